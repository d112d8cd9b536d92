//go:build ignore

package scheduler

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// containersRequest returns the request of all containers in a pod: the largest sum in the spec, as
// the kubelet has allocated them, and as it has set them up. The pod-level status replaces the
// container statuses, and includes claim requests, which are added to the other sums
// (AggregateContainerRequests in k8s.io/component-helpers/resource/helpers.go).
func containersRequest(pod *corev1.Pod, name corev1.ResourceName) resource.Quantity {
	var allocated, actuated resource.Quantity
	claims := claimsRequest(pod, name)
	if whole := &pod.Status; whole.AllocatedResources != nil && whole.Resources != nil && whole.Resources.Requests != nil {
		allocated = requestIn(whole.AllocatedResources, name)
		actuated = requestIn(whole.Resources.Requests, name)
	} else {
		allocated = sumContainers(pod, name, allocatedRequest)
		allocated.Add(claims)
		actuated = sumContainers(pod, name, actuatedRequest)
	}
	request := most(allocated, actuated)
	if resizeInfeasible(pod) {
		return request
	}
	spec := sumContainers(pod, name, specRequest)
	spec.Add(claims)
	return most(request, spec)
}

// anyStatus returns the status of a container or init container, or nil.
func anyStatus(pod *corev1.Pod, c *corev1.Container) *corev1.ContainerStatus {
	if status := statusOf(pod.Status.ContainerStatuses, c); status != nil {
		return status
	}
	return statusOf(pod.Status.InitContainerStatuses, c)
}

func allocatedRequest(pod *corev1.Pod, c *corev1.Container, name corev1.ResourceName) resource.Quantity {
	status := anyStatus(pod, c)
	switch {
	case status != nil && status.AllocatedResources != nil:
		return requestIn(status.AllocatedResources, name)
	case resizeInfeasible(pod):
		return resource.Quantity{}
	}
	return specRequest(pod, c, name)
}

func actuatedRequest(pod *corev1.Pod, c *corev1.Container, name corev1.ResourceName) resource.Quantity {
	status := anyStatus(pod, c)
	if status != nil && status.Resources != nil && status.Resources.Requests != nil {
		return requestIn(status.Resources.Requests, name)
	}
	return allocatedRequest(pod, c, name)
}
