package scheduler

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// resized returns the largest request in the spec and status for a pod that may be being resized.
// The spec does not count if the node can never carry out the resize (determineContainerReqs in
// k8s.io/component-helpers/resource/helpers.go).
func resized(pod *corev1.Pod, name corev1.ResourceName, spec, actuated,
	allocated corev1.ResourceList) resource.Quantity {
	request := most(requestIn(actuated, name), requestIn(allocated, name))
	if resizeInfeasible(pod) {
		return request
	}
	return most(request, requestIn(spec, name))
}

func resizeInfeasible(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodResizePending {
			return c.Reason == corev1.PodReasonInfeasible
		}
	}
	return false
}

// statusOf returns a container's status, or nil.
func statusOf(statuses []corev1.ContainerStatus, c *corev1.Container) *corev1.ContainerStatus {
	for i := range statuses {
		if statuses[i].Name == c.Name {
			return &statuses[i]
		}
	}
	return nil
}
