//go:build linux

package plugins

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// start reports that a pod has started, or was resized, a little later.
func (w *world) start(ctx context.Context, r *record, on *machine) {
	if !w.pause(ctx, 200*time.Millisecond) {
		return
	}
	on.writing.Lock()
	defer on.writing.Unlock()
	w.mu.Lock()
	if !r.takes() {
		w.mu.Unlock()
		return
	}
	pod := r.pod
	w.mu.Unlock()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": w.statusOf(pod)})
	if err != nil {
		panic(err)
	}
	_, err = w.Kube.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{},
		"status")
	if !isOfAnotherPod(err) { // it was created again
		w.tolerate(ctx, err, "report the start of "+keyOf(pod))
	}
}

// statusOf returns the status that a kubelet writes for a running pod. From 1.33 on it includes the
// resources of containers.
func (w *world) statusOf(pod *corev1.Pod) map[string]any {
	status := map[string]any{}
	if pod.Status.StartTime == nil { // a pod that is resized may finish meanwhile
		status["phase"], status["startTime"] = corev1.PodRunning, metav1.Now()
	}
	if w.Release.Minor < 33 {
		return status
	}
	var containers []corev1.ContainerStatus
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		containers = append(containers, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, AllocatedResources: c.Resources.Requests,
			Resources: &corev1.ResourceRequirements{Requests: c.Resources.Requests, Limits: c.Resources.Limits},
		})
	}
	status["containerStatuses"] = containers
	return status
}

// isResized reports whether the kubelet has to report the resources of a running pod again.
func isResized(pod *corev1.Pod) bool {
	for _, status := range pod.Status.ContainerStatuses {
		for i := range pod.Spec.Containers {
			c := &pod.Spec.Containers[i]
			if c.Name == status.Name && status.Resources != nil &&
				!equal(sumsOf(c.Resources.Requests), sumsOf(status.AllocatedResources)) {
				return true
			}
		}
	}
	return false
}

// agent writes the NodeResourceTopology of a node a while after its zones have changed, until the
// node is gone.
func (w *world) agent(ctx context.Context, on *machine) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-on.wake:
		}
		if !w.pause(ctx, 1500*time.Millisecond) || !w.writeTopology(ctx, on) {
			return
		}
	}
}

// writeTopology reports whether the node still exists.
func (w *world) writeTopology(ctx context.Context, on *machine) (exists bool) {
	on.writing.Lock()
	defer on.writing.Unlock()
	w.mu.Lock()
	gone, zones := on.gone, append([]int64(nil), on.zones...)
	w.mu.Unlock()
	if gone {
		return false
	}
	patch, err := json.Marshal(map[string]any{"zones": w.zonesOf(zones)})
	if err != nil {
		panic(err)
	}
	_, err = w.topologies.Patch(ctx, on.name, types.MergePatchType, patch, metav1.PatchOptions{})
	w.tolerate(ctx, err, "write the topology of "+on.name)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		on.nudge()
		return true
	}
	on.written = zones
	w.note(fmt.Sprintf("the topology of %s has %d", on.name, zones), on.name)
	return true
}

// zonesOf returns the zones of a NodeResourceTopology.
func (w *world) zonesOf(free []int64) (zones []any) {
	for i, available := range free {
		zones = append(zones, map[string]any{"name": fmt.Sprintf("node-%d", i), "type": "Node", "resources": []any{
			map[string]any{"name": "cpu", "capacity": int64(coresOfZone), "allocatable": int64(coresOfZone),
				"available": available},
		}})
	}
	return zones
}

// pause waits for a random time of the simulated kubelets and agents.
func (w *world) pause(ctx context.Context, most time.Duration) bool {
	w.mu.Lock()
	duration := time.Duration(w.random.Int64N(int64(most)))
	w.mu.Unlock()
	select {
	case <-ctx.Done():
		return false
	case <-time.After(duration):
		return true
	}
}

// tolerate records an error of a request as a violation unless the object has changed or is gone,
// or the machine is overloaded.
func (w *world) tolerate(ctx context.Context, err error, doing string) {
	if err == nil || ctx.Err() != nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) ||
		apierrors.IsAlreadyExists(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsTooManyRequests(err) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violate(doing + ": " + err.Error())
}
