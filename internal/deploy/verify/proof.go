package verify

import (
	"context"
	"fmt"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

const (
	reasonScheduled        = "Scheduled"
	reasonFailedScheduling = "FailedScheduling"
)

// source returns the controller that reported an event and its instance. A scheduler writes events
// through events.k8s.io, with its profile's name as the reporting controller, if the API server
// served that group when the scheduler started. If not, as in a static pod that starts before its
// API server, it writes through the core API: the name is the source component, and the instance is
// missing (k8s.io/client-go/tools/events, NewEventBroadcasterAdapter). The core API returns both.
func source(e *corev1.Event) (controller, instance string) {
	if e.ReportingController != "" {
		return e.ReportingController, e.ReportingInstance
	}
	return e.Source.Component, e.Source.Host
}

// scheduledEvent waits for the bound pod's Scheduled event.
func (r *verifier) scheduledEvent(ctx context.Context, pod *corev1.Pod) (*corev1.Event, error) {
	waitCtx, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	for {
		events, err := r.podEvents(waitCtx, pod)
		if err == nil {
			if event := lastOf(events, reasonScheduled); event != nil {
				return event, nil
			}
			err = clock.Sleep(waitCtx, pollInterval)
		}
		switch {
		case err == nil:
		case ctx.Err() != nil || waitCtx.Err() == nil:
			return nil, fmt.Errorf("read events of Pod/%s/%s: %w", pod.Namespace, pod.Name, err)
		default:
			return nil, r.notScheduled(pod, "it was bound to node %s, but no %s event followed within %s", pod.Spec.NodeName,
				reasonScheduled, eventTimeout)
		}
	}
}

// prove returns an error unless the bound pod's Scheduled event is from the scheduler.
func (r *verifier) prove(ctx context.Context, pod *corev1.Pod) error {
	event, err := r.scheduledEvent(ctx, pod)
	if err != nil {
		return err
	}
	r.result.BoundBy, r.result.Instance = source(event)
	if r.result.BoundBy != r.Name {
		return r.notScheduled(pod, "another scheduler bound it to node %s: %q (%s)", pod.Spec.NodeName, r.result.BoundBy,
			r.result.Instance)
	}
	r.identify(ctx)
	return nil
}

// identify records the pod of the process that bound the pod.
func (r *verifier) identify(ctx context.Context) {
	host := strings.TrimPrefix(r.result.Instance, r.Name+"-")
	var lease *coordinationv1.Lease // of the process that bound the pod: the leader schedules
	if found := r.lease(ctx); host == "" || kubeapi.HostOf(found) == host {
		lease = found
	}
	if r.result.Instance == "" {
		if r.result.Instance = holder(lease); r.result.Instance == "" {
			r.note("the event does not name the process of %s, and its lease has no holder", r.Name)
			return
		}
		r.note("the event does not name the process of %s: the instance is the holder of its lease", r.Name)
	}
	pods, err := r.schedulerPods(ctx)
	if err != nil {
		r.note("which pod of the scheduler bound it is unknown: %v", err)
		return
	}
	by := kubeapi.PodOfHost(pods, host)
	if by == nil {
		by, err = kubeapi.PodOfLeader(ctx, r.kube, lease, pods, ownership.Scheduler)
	}
	switch {
	case by != nil:
		r.result.SchedulerPod = by.Namespace + "/" + by.Name
		return
	case err != nil:
		r.note("which pod of the scheduler bound it is unknown: %v", err)
		return
	}
	r.note("the instance %q that bound the pod is not one of the %s of %s", r.result.Instance,
		plural.Count(len(pods), "pod"), r.deploymentName())
}

// lease returns the scheduler's lease, or nil if it cannot be read.
func (r *verifier) lease(ctx context.Context) *coordinationv1.Lease {
	lease, err := kubeapi.Get(ctx, r.retry, r.kube.CoordinationV1().Leases(r.Namespace).Get, "Lease", r.Namespace,
		r.Deployment)
	if err != nil {
		return nil
	}
	return lease
}

// schedulerPods returns the pods of the scheduler's Deployment.
func (r *verifier) schedulerPods(ctx context.Context) ([]corev1.Pod, error) {
	list, err := kubeapi.List(ctx, r.retry, "list pods of the scheduler",
		r.kube.CoreV1().Pods(r.Namespace).List,
		metav1.ListOptions{LabelSelector: ownership.LabelInstance + "=" + r.Deployment})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

func (r *verifier) podEvents(ctx context.Context, pod *corev1.Pod) ([]corev1.Event, error) {
	list, err := kubeapi.List(ctx, r.retry, "list events in namespace "+pod.Namespace,
		r.kube.CoreV1().Events(pod.Namespace).List,
		metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(pod.UID)})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// lastOf returns the newest event with that reason, or nil.
func lastOf(events []corev1.Event, reason string) *corev1.Event {
	var last *corev1.Event
	for i := range events {
		if events[i].Reason == reason && (last == nil || kubeapi.EventTime(last).Before(kubeapi.EventTime(&events[i]))) {
			last = &events[i]
		}
	}
	return last
}

// NotScheduledError is returned when the scheduler did not bind the pod.
type NotScheduledError struct {
	Scheduler string
	Pod       string // namespace/name
	Node      string // where another scheduler bound it
	Reason    string // the most likely one, in a sentence
	Findings  []string
	Log       []string // last warnings and errors of the scheduler
}

// Error returns the reason in its first line. The findings follow, indented.
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

// Hint returns how to investigate further.
func (e *NotScheduledError) Hint() string {
	return "see the log of the scheduler's pods; verify again with --keep to inspect the pod; `pmk-sched rollback` returns to " +
		"the revision before"
}

// CheckFailed reports that the check ran and failed.
func (e *NotScheduledError) CheckFailed() bool { return true }

func (r *verifier) notScheduled(pod *corev1.Pod, format string, args ...any) *NotScheduledError {
	return &NotScheduledError{
		Scheduler: r.Name, Pod: pod.Namespace + "/" + pod.Name, Node: pod.Spec.NodeName, Reason: fmt.Sprintf(format, args...),
	}
}
