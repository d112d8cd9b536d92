package verify

import (
	"context"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/podstatus"
)

// proveDefault returns an error unless the expected replacement bound the pod.
func (d *defaultVerifier) proveDefault(ctx context.Context, pod *corev1.Pod, leader string) error {
	event, err := d.scheduledEvent(ctx, pod)
	if err != nil {
		return err
	}
	if d.result.BoundBy, d.result.Instance = source(event); d.result.BoundBy != corev1.DefaultSchedulerName {
		return d.notScheduled(pod, "another scheduler bound it: %q", d.result.BoundBy)
	}
	pods, lease, err := d.readLease(ctx)
	if err != nil {
		return err
	}
	now := holder(lease)
	if d.result.Leader = now; now != leader {
		return &leaderChangedError{d.notScheduled(pod,
			"the leader changed from %q to %q, so it is unknown which of them bound the pod: verify again", leader, now)}
	}
	if d.result.Instance == "" {
		d.result.Instance = now
		d.note("the event does not name the process: the instance is the holder of the lease before and after")
	}
	by, err := d.podOf(ctx, lease, pods)
	if err != nil {
		return err
	}
	if by == nil {
		return d.notScheduled(pod, "no static pod is known to be the leader %q: no log of one says that it acquired the "+
			"lease", now)
	}
	return d.checkStaticPod(ctx, pod, by)
}

// checkStaticPod returns an error unless the static pod that bound the pod is the expected
// replacement.
func (d *defaultVerifier) checkStaticPod(ctx context.Context, pod, by *corev1.Pod) error {
	d.result.SchedulerPod = by.Namespace + "/" + by.Name
	d.result.Replacement = by.Annotations[d.o.Annotation]
	if status := podstatus.StatusOf(by, kubeapi.DefaultScheduler(by).Name); status != nil {
		d.result.Image, d.result.ImageID = status.Image, status.ImageID
		d.runningProgram(status.ContainerID)
	}
	if d.o.Metrics != nil {
		if text, err := d.o.Metrics(ctx, by.Spec.NodeName); err == nil {
			d.result.Build = buildInfo(text)
		} else {
			d.note("the scheduler's metrics are unavailable: %v", err)
		}
	}
	switch {
	case d.result.Replacement == "" && !d.o.Unreplaced:
		return d.notScheduled(pod, "the default scheduler of node %s bound it, which is not replaced (image %s)",
			by.Spec.NodeName, d.result.Image)
	case len(d.result.Programs) > 0 && by.Annotations[d.o.Binary] != "" &&
		!slices.Contains(d.result.Programs, by.Annotations[d.o.Binary]):
		return d.notScheduled(pod, "the process on node %s runs another program: expected SHA-256 %s, got %s",
			by.Spec.NodeName, by.Annotations[d.o.Binary], strings.Join(d.result.Programs, ", "))
	case d.o.Want != "" && d.result.Replacement != d.o.Want:
		return d.notScheduled(pod, "replacement %s on node %s bound it, not %s", d.result.Replacement, by.Spec.NodeName,
			d.o.Want)
	}
	return nil
}

// runningProgram records which programs the container runs, if it runs on this machine.
func (d *defaultVerifier) runningProgram(containerID string) {
	if d.o.Running == nil {
		return
	}
	_, id, _ := strings.Cut(containerID, "://")
	programs, err := d.o.Running(id)
	if err != nil {
		d.note("the program of the running process is unknown: %v", err)
		return
	}
	d.result.Programs = programs
}

// buildInfo returns the metric with a program's version (k8s.io/component-base/metrics/version.go).
func buildInfo(metrics string) string {
	for _, line := range strings.Split(metrics, "\n") {
		if strings.HasPrefix(line, "kubernetes_build_info{") {
			return line
		}
	}
	return ""
}

// podOf returns the static pod of the process that holds the lease, see [kubeapi.PodOfLeader], or
// nil if there is none.
func (d *defaultVerifier) podOf(ctx context.Context, lease *coordinationv1.Lease, pods []corev1.Pod) (*corev1.Pod,
	error) {
	if len(pods) == 1 {
		return &pods[0], nil
	}
	return kubeapi.PodOfLeader(ctx, d.kube, lease, pods, defaultContainer)
}

// staticPods returns default schedulers' mirror pods.
func (d *defaultVerifier) staticPods(ctx context.Context) ([]corev1.Pod, error) {
	return kubeapi.Read(ctx, d.retry, "list the pods of default schedulers",
		func(ctx context.Context) ([]corev1.Pod, error) {
			return kubeapi.DefaultSchedulerPods(ctx, d.kube.CoreV1())
		})
}

// leaderChangedError is a NotScheduledError that another attempt may avoid.
type leaderChangedError struct{ error }

func (e *leaderChangedError) Unwrap() error { return e.error }
