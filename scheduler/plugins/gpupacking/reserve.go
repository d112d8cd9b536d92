package gpupacking

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Reserve chooses the pod's devices.
func (g *GPUPacking) Reserve(_ context.Context, _ scheduler.State, pod *corev1.Pod, node string) *scheduler.Status {
	d := demandOf(pod, g.settings.resource)
	if d.gpu <= 0 || isScheduled(pod) {
		return nil
	}
	info, err := g.handle.Nodes().Get(node)
	if err != nil {
		return scheduler.Error(fmt.Errorf("choose GPUs of node %s: %w", node, err))
	}
	r, ok := g.roomOf(info, pod.UID)
	if !ok {
		return g.none
	}
	if r.cpu < d.cpu {
		r.cpu = d.cpu // of a pod that was preempted and has not ended
	}
	devices, _, ok := g.mix.get().place(r, d)
	if !ok {
		return g.full
	}
	g.assumed.Assume(scheduler.AssumedPod{UID: pod.UID, Node: node, Value: reservation{d.gpu, devices}})
	return nil
}

// isScheduled reports whether the API server has bound the pod: an extender calls Reserve for those
// too, and they keep their devices.
func isScheduled(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// Unreserve gives the devices back.
func (g *GPUPacking) Unreserve(_ context.Context, _ scheduler.State, pod *corev1.Pod, _ string) {
	if !isScheduled(pod) {
		g.forget(pod)
	}
}

func (g *GPUPacking) forget(pod *corev1.Pod) { g.assumed.Forget(pod.UID) }

// PreBindPreFlight reports that a pod without GPUs needs no annotation.
func (g *GPUPacking) PreBindPreFlight(_ context.Context, _ scheduler.State, pod *corev1.Pod,
	_ string) *scheduler.Status {
	if demandOf(pod, g.settings.resource).gpu <= 0 {
		return scheduler.Skip()
	}
	return nil
}

// PreBind writes the devices in the pod's annotations, before the kubelet sees the pod.
func (g *GPUPacking) PreBind(ctx context.Context, _ scheduler.State, pod *corev1.Pod, node string) *scheduler.Status {
	if demandOf(pod, g.settings.resource).gpu <= 0 {
		return nil
	}
	reserved, ok := g.reservationOf(pod.UID)
	if !ok {
		return scheduler.Error(fmt.Errorf("annotate pod %s/%s: its GPUs on node %s are not reserved", pod.Namespace, pod.Name,
			node))
	}
	if err := g.annotate(ctx, pod, reserved.devices); err != nil {
		return scheduler.Error(fmt.Errorf("annotate pod %s/%s with its GPUs: %w", pod.Namespace, pod.Name, err))
	}
	g.handle.Logger(ctx).Info(5, "GPUPacking annotated a pod", "namespace", pod.Namespace, "pod", pod.Name, "node", node,
		"devices", reserved.devices)
	return nil
}

func (g *GPUPacking) annotate(ctx context.Context, pod *corev1.Pod, devices []int) error {
	a := g.settings.annotations
	annotations := map[string]string{a.Index: indices(devices)}
	if a.Time != "" {
		annotations[a.Time] = strconv.FormatInt(g.now().UnixNano(), 10)
	}
	for key, value := range a.Set {
		annotations[key] = value
	}
	return scheduler.AnnotatePod(ctx, g.handle.ClientSet(), pod, annotations)
}
