package verify

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/kubeapi"
)

// proveDefault tells whose the binding is.
func (d *defaultVerifier) proveDefault(ctx context.Context, pod *corev1.Pod, leader string) error {
	event, err := d.scheduledEvent(ctx, pod)
	if err != nil {
		return err
	}
	if d.v.BoundBy, d.v.Instance = source(event); d.v.BoundBy != corev1.DefaultSchedulerName {
		return d.notScheduled(pod, fmt.Sprintf("it was bound by another scheduler: %q", d.v.BoundBy))
	}
	now, err := d.holder(ctx)
	if err != nil {
		return err
	}
	if d.v.Leader = now; now != leader {
		return &leaderChangedError{d.notScheduled(pod, fmt.Sprintf("the leader changed from %q to %q meanwhile, so that it cannot be told which of them bound it: verify again", leader, now))}
	}
	if d.v.Instance == "" {
		d.v.Instance = now
		d.note("the event does not tell which process it was: the instance is the holder of the lease, before and after")
	}
	by, err := d.podOf(ctx, now)
	if err != nil {
		return err
	}
	if by == nil {
		return d.notScheduled(pod, fmt.Sprintf("no static pod is known for the leader %q", now))
	}
	return d.judgePod(ctx, pod, by)
}

// judgePod compares the static pod that bound the pod with what it has to be.
func (d *defaultVerifier) judgePod(ctx context.Context, pod, by *corev1.Pod) error {
	d.v.SchedulerPod = by.Namespace + "/" + by.Name
	d.v.Replacement = by.Annotations[d.o.Annotation]
	for _, status := range by.Status.ContainerStatuses {
		if status.Name == defaultContainer {
			d.v.Image, d.v.ImageID = status.Image, status.ImageID
			d.runningProgram(status.ContainerID)
		}
	}
	if d.o.Metrics != nil {
		if text, err := d.o.Metrics(ctx, by.Spec.NodeName); err == nil {
			d.v.Build = buildInfo(text)
		} else {
			d.note("its metrics could not be read: %v", err)
		}
	}
	switch {
	case d.v.Replacement == "":
		return d.notScheduled(pod, fmt.Sprintf("it was bound by the default scheduler of node %s, which is not replaced (image %s)", by.Spec.NodeName, d.v.Image))
	case len(d.v.Programs) > 0 && by.Annotations[d.o.Binary] != "" && !slices.Contains(d.v.Programs, by.Annotations[d.o.Binary]):
		return d.notScheduled(pod, fmt.Sprintf("the process on node %s runs another program (SHA-256 %s) than the one it was replaced with (%s)", by.Spec.NodeName, strings.Join(d.v.Programs, ", "), by.Annotations[d.o.Binary]))
	case d.o.Want != "" && d.v.Replacement != d.o.Want:
		return d.notScheduled(pod, fmt.Sprintf("it was bound by replacement %s on node %s, not by %s", d.v.Replacement, by.Spec.NodeName, d.o.Want))
	}
	return nil
}

// runningProgram asks this machine which program the container runs.
func (d *defaultVerifier) runningProgram(containerID string) {
	if d.o.Running == nil {
		return
	}
	_, id, _ := strings.Cut(containerID, "://")
	programs, err := d.o.Running(id)
	if err != nil {
		d.note("the program of the running process could not be looked at: %v", err)
		return
	}
	d.v.Programs = programs
}

// buildInfo is the line of the metrics in which a program says what it was built from
// (k8s.io/component-base/metrics/version.go).
func buildInfo(metrics string) string {
	for _, line := range strings.Split(metrics, "\n") {
		if strings.HasPrefix(line, "kubernetes_build_info{") {
			return line
		}
	}
	return ""
}

// podOf finds the static pod of the process that holds the lease: by its host name,
// or the only one there is.
func (d *defaultVerifier) podOf(ctx context.Context, holder string) (*corev1.Pod, error) {
	pods, err := d.staticPods(ctx)
	if err != nil {
		return nil, err
	}
	if len(pods) == 1 {
		return &pods[0], nil
	}
	host, _, _ := strings.Cut(holder, "_")
	for i := range pods {
		node, err := d.kube.CoreV1().Nodes().Get(ctx, pods[i].Spec.NodeName, metav1.GetOptions{})
		if err != nil {
			return nil, kubeapi.Explain("read Node/"+pods[i].Spec.NodeName, err)
		}
		for _, address := range node.Status.Addresses {
			if address.Address == host || node.Name == host {
				return &pods[i], nil
			}
		}
	}
	return nil, nil
}

// staticPods are the mirror pods with a default scheduler in them.
func (d *defaultVerifier) staticPods(ctx context.Context) ([]corev1.Pod, error) {
	var list *corev1.PodList
	err := d.retry.Do(ctx, "list pods in kube-system", func(ctx context.Context) (err error) {
		list, err = d.kube.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{})
		return err
	})
	if err != nil {
		return nil, err
	}
	var pods []corev1.Pod
	for i := range list.Items {
		pod := &list.Items[i]
		if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror && containerOf(pod) != nil {
			pods = append(pods, *pod)
		}
	}
	return pods, nil
}

func containerOf(pod *corev1.Pod) *corev1.Container {
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == defaultContainer {
			return &pod.Spec.Containers[i]
		}
	}
	return nil
}

// leaderChangedError is a NotScheduledError that may not come again.
type leaderChangedError struct{ error }

func (e *leaderChangedError) Unwrap() error { return e.error }

func (d *defaultVerifier) notScheduled(pod *corev1.Pod, reason string) error {
	return &NotScheduledError{Scheduler: corev1.DefaultSchedulerName, Pod: pod.Namespace + "/" + pod.Name, Node: pod.Spec.NodeName, Reason: reason}
}
