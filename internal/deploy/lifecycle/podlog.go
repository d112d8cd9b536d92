package lifecycle

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

// logOptions say whose logs to print.
type logOptions struct {
	Name, Namespace string
	// Container is the container in each pod.
	Container string
	// Since is the age at which the log begins. If it is 0, the whole log is printed.
	Since time.Duration
	// Follow prints new lines, of new pods too, until the context ends.
	Follow bool
	// Warn reports that a log cannot be read. It may be nil.
	Warn func(text string)
	Log  *zap.Logger
}

// defaultInterval is the interval at which pods and leader are read, and logs that ended are read
// again, while logs are followed.
const defaultInterval = 2 * time.Second

// maxLine bounds a line, in bytes.
const maxLine = 1 << 20

// printer prints one scheduler's logs.
type printer struct {
	logOptions
	kube     kubernetes.Interface
	retry    *kubeapi.Retrier
	interval time.Duration
	// found is a lease holder's pod. Finding it may need all logs, so it is kept.
	found struct{ holder, pod string }

	mu     sync.Mutex
	w      io.Writer
	leader string // name of the leading pod, or empty if unknown
}

// printLogs prints the logs from a scheduler's replicas to w. Each line begins with its pod's name,
// and "leader" if the pod leads when the line is read. It returns an error if no pod exists or if
// no log can be read.
func printLogs(ctx context.Context, cfg *rest.Config, o logOptions, w io.Writer) error {
	p, err := newPrinter(cfg, o, w)
	if err != nil {
		return err
	}
	return p.run(ctx)
}

func newPrinter(cfg *rest.Config, o logOptions, w io.Writer) (*printer, error) {
	cfg = kubeapi.ClientConfig(cfg, o.Log)
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("create client for %s: %w", cfg.Host, err)
	}
	return &printer{logOptions: o, kube: kube, retry: &kubeapi.Retrier{Log: o.Log}, interval: defaultInterval, w: w}, nil
}

func (p *printer) run(ctx context.Context) error {
	pods, err := p.refresh(ctx)
	if err != nil {
		return err
	}
	if len(pods) == 0 {
		return problem.Invalidf("`pmk-sched status` lists those that are deployed",
			"scheduler %s has no pods in namespace %s", p.Name, p.Namespace)
	}
	if p.Follow {
		return p.follow(ctx)
	}
	var failed []error
	for i := range pods {
		if _, err := p.stream(ctx, &pods[i], p.since()); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if errors.As(err, new(*writeError)) {
				return err
			}
			failed = append(failed, err)
		}
	}
	if len(failed) == len(pods) {
		return errors.Join(failed...)
	}
	for _, err := range failed {
		p.warn(err)
	}
	return nil
}

func (p *printer) warn(err error) {
	if p.Warn != nil {
		p.Warn(err.Error())
	}
}

// since returns the time from which to print; zero: from the beginning.
func (p *printer) since() time.Time {
	if p.Since == 0 {
		return time.Time{}
	}
	return time.Now().Add(-p.Since)
}

// refresh reads the pods, by name, and the leader.
func (p *printer) refresh(ctx context.Context) ([]corev1.Pod, error) {
	list, err := kubeapi.List(ctx, p.retry, "list pods of scheduler "+p.Name,
		p.kube.CoreV1().Pods(p.Namespace).List, metav1.ListOptions{LabelSelector: ownership.LabelInstance + "=" + p.Name})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	leader, err := p.readLeader(ctx, list.Items)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.leader = leader
	p.mu.Unlock()
	return list.Items, nil
}

// readLeader returns the name of the pod that holds the lease. It returns "" if no pod holds it, if
// the pod is unknown, or without permission to read the lease.
func (p *printer) readLeader(ctx context.Context, pods []corev1.Pod) (string, error) {
	lease, err := kubeapi.Get(ctx, p.retry, p.kube.CoordinationV1().Leases(p.Namespace).Get, "Lease", p.Namespace, p.Name)
	switch {
	case err != nil && !apierrors.IsNotFound(err) && !errors.As(err, new(*kubeapi.ForbiddenError)):
		return "", err
	case err != nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "":
		return "", nil //nolint:nilerr // without a lease that can be read no pod is marked
	case *lease.Spec.HolderIdentity == p.found.holder:
		return p.found.pod, nil
	}
	leader, err := kubeapi.PodOfLeader(ctx, p.kube, lease, pods, p.Container)
	if err != nil || leader == nil {
		return "", nil //nolint:nilerr // a log that cannot be read is reported when it is to be printed
	}
	p.found.holder, p.found.pod = *lease.Spec.HolderIdentity, leader.Name
	return leader.Name, nil
}

// stream prints a pod's log from a time on, and returns its last line's time. While logs are
// followed it returns when the container ends.
func (p *printer) stream(ctx context.Context, pod *corev1.Pod, since time.Time) (last time.Time, err error) {
	last = since
	options := &corev1.PodLogOptions{Container: p.Container, Follow: p.Follow, Timestamps: true}
	if !since.IsZero() {
		options.SinceTime = &metav1.Time{Time: since}
	}
	doing := "read the log of Pod/" + pod.Namespace + "/" + pod.Name
	text, err := p.kube.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).Stream(ctx)
	if err != nil {
		return last, kubeapi.Explain(doing, err)
	}
	defer func() { _ = text.Close() }() // nothing is written
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		at, line := splitTime(lines.Text())
		if !at.IsZero() && !at.After(since) {
			continue // times in requests have no fractions
		}
		if at.After(last) {
			last = at
		}
		if err := p.print(pod.Name, line); err != nil {
			return last, err
		}
	}
	if err := lines.Err(); err != nil {
		return last, kubeapi.Explain(doing, err)
	}
	return last, nil
}

// splitTime separates the time that the API server puts before a line.
func splitTime(line string) (time.Time, string) {
	stamp, rest, _ := strings.Cut(line, " ")
	at, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return time.Time{}, line // a message of the kubelet
	}
	return at, rest
}

// print prints one line.
func (p *printer) print(pod, line string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	mark := ""
	if pod == p.leader {
		mark = " leader"
	}
	if _, err := fmt.Fprintf(p.w, "[%s%s] %s\n", pod, mark, line); err != nil {
		return &writeError{err}
	}
	return nil
}

// writeError is returned when a log was read and cannot be printed.
type writeError struct{ err error }

func (e *writeError) Error() string { return "print the log: " + e.err.Error() }
func (e *writeError) Unwrap() error { return e.err }
