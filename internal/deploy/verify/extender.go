package verify

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/cluster/podstatus"
)

// callTime is the time that the extender may take to report the call after the pod is bound.
const callTime = 5 * time.Second

// ExtenderOptions select an extender, and a scheduler that calls it.
type ExtenderOptions struct {
	// Options for the scheduler.
	Options
	// Extender and ExtenderNamespace are the extender's name and the namespace of its pods. Port is
	// the port of their HTTPS server.
	Extender, ExtenderNamespace string
	Port                        int
	// URL is the address at which the scheduler calls it.
	URL string
	// Filters is set if the scheduler asks it for every pod, and Required if a pod waits when it does
	// not answer.
	Filters, Required bool
	// Resources are the only resources for whose pods the scheduler calls it. If it is empty, the
	// scheduler calls it for every pod.
	Resources []string
}

// Extender creates a pod for the scheduler and returns nil when the extender was called for it: the
// extender reports whether it has answered for the pod, and the scheduler has decided about it
// without a failed call in its event or log. A bound pod is a proof too, provided that the
// scheduler must call the extender. The error is a [*NotReachedError] if the extender was not
// called. unknown is the reason why the call is neither proven nor refuted: nothing can be read
// from the extender, or its version only counts requests, which another caller may have sent.
func Extender(ctx context.Context, cfg *rest.Config, o ExtenderOptions) (unknown string, err error) {
	var result Result
	r, err := newVerifier(cfg, o.Options, &result)
	if err != nil {
		return "", err
	}
	r.Deployment = o.Name
	e := &extenderVerifier{verifier: r, o: o}
	defer func() { err = errors.Join(err, r.finish(ctx)) }()
	return e.run(ctx)
}

// ExtenderAnswers returns an error unless the API server reaches one of an extender's ready pods,
// at the port of their HTTPS server.
func ExtenderAnswers(ctx context.Context, cfg *rest.Config, name, namespace string, port int, log *zap.Logger) error {
	r, err := newVerifier(cfg, Options{Namespace: namespace, Log: log}, &Result{})
	if err != nil {
		return err
	}
	e := &extenderVerifier{verifier: r, o: ExtenderOptions{Extender: name, ExtenderNamespace: namespace, Port: port}}
	pods, err := e.extenderPods(ctx)
	if err != nil {
		return err
	}
	var failed error
	for _, pod := range pods {
		if _, err = e.page(ctx, pod, "/healthz", nil); err == nil {
			return nil
		}
		failed = errors.Join(failed, fmt.Errorf("reach Pod/%s/%s: %w", namespace, pod, err))
	}
	return failed
}

// NotReachedError is returned when a scheduler did not call its extender.
type NotReachedError struct {
	Scheduler, Extender, URL string
	Reason                   string
}

// Error names the scheduler, the extender and the reason.
func (e *NotReachedError) Error() string {
	return fmt.Sprintf("scheduler %s does not reach extender %s at %s: %s", e.Scheduler, e.Extender, e.URL, e.Reason)
}

// Hint returns how to investigate further.
func (e *NotReachedError) Hint() string {
	return "check that the extender's pods are on nodes with a working pod network, that kube-proxy (or what replaces " +
		"it) serves Services there and on the scheduler's node, and that no NetworkPolicy is in the way"
}

// extenderVerifier verifies an extender once.
type extenderVerifier struct {
	*verifier
	o ExtenderOptions
}

func (e *extenderVerifier) run(ctx context.Context) (unknown string, err error) {
	seen := e.observe(ctx)
	pod, err := e.createPod(ctx, e.o.Resources...)
	if err != nil {
		return "", err
	}
	deadline, bound := time.Now().Add(e.Timeout), time.Time{}
	for {
		said, err := e.failure(ctx, pod)
		if err != nil {
			return "", err
		}
		if strings.Contains(said, strings.TrimSuffix(e.o.URL, "/")+"/") {
			return "", e.notReached(said)
		}
		if bound.IsZero() && pod.Spec.NodeName != "" {
			bound = time.Now()
		}
		if !bound.IsZero() && e.o.Filters && e.o.Required && len(e.o.Resources) == 0 {
			return "", nil // it would still wait
		}
		unread := seen.err
		if unread == nil && (!bound.IsZero() || said != "") {
			called, err := e.called(ctx, pod, seen)
			if called {
				return seen.doubt(), e.checkNotSkipped(ctx, pod)
			}
			unread = err
		}
		switch {
		case !bound.IsZero() && time.Since(bound) > callTime:
			return e.boundWithoutCall(ctx, pod, unread)
		case bound.IsZero() && time.Now().After(deadline):
			return "", e.notReached(fmt.Sprintf("no request for the pod within %s, and the pod is Pending: %s", e.Timeout, said))
		}
		if err := clock.Sleep(ctx, pollInterval); err != nil {
			return "", fmt.Errorf("wait until extender %s is called: %w", e.o.Extender, err)
		}
		if pod, err = e.kube.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{}); err != nil {
			return "", fmt.Errorf("read Pod/%s/%s: %w", e.result.Namespace, e.result.Pod, err)
		}
	}
}

// checkNotSkipped returns an error if the scheduler's log shows that it decided without the
// extender.
func (e *extenderVerifier) checkNotSkipped(ctx context.Context, pod *corev1.Pod) error {
	skipped, err := e.skipped(ctx, pod)
	if err == nil && skipped != "" {
		err = e.skippedError(skipped)
	}
	return err
}

func (e *extenderVerifier) skippedError(line string) error {
	return e.notReached("it schedules without the extender, which is ignorable; its log: " + line)
}

// boundWithoutCall explains that a pod was bound and no request was seen: as an error, or as the
// reason why the result is unknown.
func (e *extenderVerifier) boundWithoutCall(ctx context.Context, pod *corev1.Pod,
	unread error) (unknown string, err error) {
	skipped, err := e.skipped(ctx, pod)
	switch {
	case err != nil:
		return "", err
	case skipped != "":
		return "", e.skippedError(skipped)
	case unread != nil:
		return fmt.Sprintf("its metrics cannot be read: %v", unread), nil
	case !e.o.Filters:
		return "a pod was bound without a request, as is usual where a single node is feasible: then there is nothing to " +
			"prioritize", nil
	}
	return "",
		e.notReached(
			"a pod was bound, and the extender answered no request for it; it is ignorable, so that pods are scheduled " +
				"without it")
}

// skipped returns the line in the scheduler's log about an extender that was skipped since the pod
// was created, or "" (k8s.io/kubernetes/pkg/scheduler, findNodesThatPassExtenders).
func (e *extenderVerifier) skipped(ctx context.Context, pod *corev1.Pod) (string, error) {
	pods, err := e.schedulerPods(ctx)
	if err != nil {
		return "", err
	}
	limit := int64(logBytes)
	for i := range pods {
		text, err := e.kube.CoreV1().Pods(pods[i].Namespace).GetLogs(pods[i].Name, &corev1.PodLogOptions{
			Container: defaultContainer, SinceTime: &pod.CreationTimestamp, LimitBytes: &limit,
		}).DoRaw(ctx)
		if err != nil {
			e.Log.Debug("read the scheduler's log", zap.String("pod", pods[i].Name), zap.Error(err))
			continue
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "Skipping extender") && strings.Contains(line, strings.TrimPrefix(e.o.URL, "https://")) {
				return strings.TrimSpace(line), nil
			}
		}
	}
	return "", nil
}

func (e *extenderVerifier) notReached(reason string) error {
	return &NotReachedError{Scheduler: e.Name, Extender: e.o.Extender, URL: e.o.URL, Reason: strings.TrimSpace(reason)}
}

// failure returns why the scheduler did not bind the pod, from its last FailedScheduling event or
// from its condition, or "" if it has not decided.
func (e *extenderVerifier) failure(ctx context.Context, pod *corev1.Pod) (string, error) {
	events, err := e.podEvents(ctx, pod)
	if err != nil {
		return "", err
	}
	if event := lastOf(events, reasonFailedScheduling); event != nil {
		return event.Message, nil
	}
	if c := podstatus.Condition(pod, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse {
		return c.Message, nil
	}
	return "", nil
}

// requestResources makes a pod request one unit of each resource.
func requestResources(c *corev1.Container, names []string) {
	for _, name := range names {
		if c.Resources.Limits == nil {
			c.Resources.Limits = corev1.ResourceList{}
		}
		c.Resources.Requests[corev1.ResourceName(name)] = resource.MustParse("1")
		c.Resources.Limits[corev1.ResourceName(name)] = resource.MustParse("1")
	}
}
