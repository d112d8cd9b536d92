package verify

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/clock"
	"github.com/pmk-sched/pmk-sched/internal/kubeapi"
)

const (
	reasonScheduled        = "Scheduled"
	reasonFailedScheduling = "FailedScheduling"
)

// source tells who reported an event: the controller and which instance of it. A scheduler writes events through events.k8s.io, with the name
// of its profile as the reporting controller, if the API server served that group when the scheduler started. If not, as in a static pod
// that starts before its API server, it writes through the core API: the name is the source component, and the instance is not
// told (k8s.io/client-go/tools/events, NewEventBroadcasterAdapter). The core API shows both.
func source(e *corev1.Event) (controller, instance string) {
	if e.ReportingController != "" {
		return e.ReportingController, e.ReportingInstance
	}
	return e.Source.Component, e.Source.Host
}

// prove finds the Scheduled event of the bound pod, and takes its source as the scheduler that bound it.
func (r *verifier) prove(ctx context.Context, pod *corev1.Pod) error {
	event, err := r.scheduledEvent(ctx, pod)
	if err != nil {
		return err
	}
	return r.judgeSource(ctx, pod, event)
}

// scheduledEvent waits for the Scheduled event of the bound pod.
func (r *verifier) scheduledEvent(ctx context.Context, pod *corev1.Pod) (*corev1.Event, error) {
	waitCtx, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	for {
		events, err := r.podEvents(waitCtx, pod)
		if err == nil {
			if event := lastOf(events, reasonScheduled); event != nil {
				return event, nil
			}
			err = clock.Sleep(waitCtx, poll)
		}
		switch {
		case err == nil:
		case ctx.Err() != nil || waitCtx.Err() == nil:
			return nil, fmt.Errorf("read events of Pod/%s/%s: %w", pod.Namespace, pod.Name, err)
		default:
			return nil, &NotScheduledError{
				Scheduler: r.Name, Pod: pod.Namespace + "/" + pod.Name, Node: pod.Spec.NodeName,
				Reason: fmt.Sprintf("it was bound to node %s, but no %s event came within %s that tells by whom", pod.Spec.NodeName, reasonScheduled, eventTimeout),
			}
		}
	}
}

// judgeSource decides whether the event is our scheduler's.
func (r *verifier) judgeSource(ctx context.Context, pod *corev1.Pod, event *corev1.Event) error {
	r.v.BoundBy, r.v.Instance = source(event)
	if r.v.BoundBy != r.Name {
		return &NotScheduledError{
			Scheduler: r.Name, Pod: pod.Namespace + "/" + pod.Name, Node: pod.Spec.NodeName,
			Reason: fmt.Sprintf("it was bound to node %s by another scheduler: %q (%s)", pod.Spec.NodeName, r.v.BoundBy, r.v.Instance),
		}
	}
	host := strings.TrimPrefix(r.v.Instance, r.Name+"-")
	if r.v.Instance == "" {
		if host = r.leader(ctx); host == "" {
			r.note("the event does not tell which process of %s it was, and nobody holds its lease", r.Name)
			return nil
		}
		r.v.Instance = host
		r.note("the event does not tell which process of %s it was: the instance is the holder of its lease", r.Name)
	}
	pods, err := r.schedulerPods(ctx)
	if err != nil {
		r.note("which pod of the scheduler it was could not be told: %v", err)
		return nil
	}
	if by := podOfInstance(pods, host); by != nil {
		r.v.SchedulerPod = by.Namespace + "/" + by.Name
		return nil
	}
	r.note("the instance %q that bound the pod is none of the %d pods of %s", r.v.Instance, len(pods), r.deploymentName())
	return nil
}

// leader returns the host name of whoever holds the scheduler's lease, empty if nobody does or it cannot be read.
func (r *verifier) leader(ctx context.Context) string {
	lease, err := r.lease(ctx)
	if err != nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	host, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	return host
}

// podOfInstance finds the pod of the scheduler process that runs on a host of that name: a pod's host name is its own name or, in the host's
// network, that of the machine, which need not be the node's name. Then it is told only if there is no other.
func podOfInstance(pods []corev1.Pod, host string) *corev1.Pod {
	for i := range pods {
		if pods[i].Name == host || pods[i].Spec.HostNetwork && pods[i].Spec.NodeName == host {
			return &pods[i]
		}
	}
	if len(pods) == 1 && pods[0].Spec.HostNetwork {
		return &pods[0]
	}
	return nil
}

// schedulerPods returns the pods of the scheduler's Deployment.
func (r *verifier) schedulerPods(ctx context.Context) ([]corev1.Pod, error) {
	var list *corev1.PodList
	err := r.retry.Do(ctx, "list pods of the scheduler", func(ctx context.Context) (err error) {
		list, err = r.kube.CoreV1().Pods(r.Namespace).List(ctx, metav1.ListOptions{LabelSelector: kubeapi.LabelInstance + "=" + r.Name})
		return err
	})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

func (r *verifier) podEvents(ctx context.Context, pod *corev1.Pod) ([]corev1.Event, error) {
	var list *corev1.EventList
	err := r.retry.Do(ctx, "list events in namespace "+pod.Namespace, func(ctx context.Context) (err error) {
		list, err = r.kube.CoreV1().Events(pod.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(pod.UID)})
		return err
	})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// lastOf returns the newest event of that reason, or nil.
func lastOf(events []corev1.Event, reason string) *corev1.Event {
	var last *corev1.Event
	for i := range events {
		if events[i].Reason == reason && (last == nil || kubeapi.EventTime(last).Before(kubeapi.EventTime(&events[i]))) {
			last = &events[i]
		}
	}
	return last
}

// NotScheduledError says that the scheduler did not do what a pod asked of it, and why as far as can be told.
type NotScheduledError struct {
	Scheduler string
	Pod       string // namespace/name
	Node      string // where it was bound, if it was
	Reason    string // the likeliest, in a sentence
	Findings  []string
	Log       []string // warnings and errors that the scheduler wrote last
}

// Error tells the likeliest reason in its first line; what was looked at follows, indented.
func (e *NotScheduledError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "scheduler %s did not bind Pod/%s: %s", e.Scheduler, e.Pod, e.Reason)
	for _, finding := range e.Findings {
		b.WriteString("\n  " + finding)
	}
	if len(e.Log) > 0 {
		b.WriteString("\n  warnings and errors in the scheduler's log:")
	}
	for _, line := range e.Log {
		b.WriteString("\n    " + line)
	}
	return b.String()
}

// Hint says how to look further.
func (e *NotScheduledError) Hint() string {
	return "see the log of the scheduler's pods; verify again with --keep to look at the pod itself"
}

// CheckFailed says that the scheduler was looked at, and does not schedule.
func (e *NotScheduledError) CheckFailed() bool { return true }
