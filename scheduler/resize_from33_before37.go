package scheduler

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// containersRequest returns the request for a pod's containers, each with the resources in its
// status, and for the pod's claims.
func containersRequest(pod *corev1.Pod, name corev1.ResourceName) resource.Quantity {
	request := sumContainers(pod, name, containerRequest)
	request.Add(claimsRequest(pod, name))
	return request
}

// containerRequest returns the request of a container or sidecar. Other init containers cannot be
// resized.
func containerRequest(pod *corev1.Pod, c *corev1.Container, name corev1.ResourceName) resource.Quantity {
	status := statusOf(pod.Status.ContainerStatuses, c)
	if status == nil && IsSidecar(c) {
		status = statusOf(pod.Status.InitContainerStatuses, c)
	}
	if status == nil || status.Resources == nil {
		return specRequest(pod, c, name)
	}
	return resized(pod, name, c.Resources.Requests, status.Resources.Requests, status.AllocatedResources)
}
