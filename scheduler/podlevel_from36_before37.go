package scheduler

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// podLevelRequest returns the request for the pod as a whole, if there is one in the spec. While
// the pod is resized, it is the largest of the requests in its spec and its status.
func podLevelRequest(pod *corev1.Pod, name corev1.ResourceName) (request resource.Quantity, found bool) {
	requests := podLevelRequests(pod)
	if _, found = requests[name]; !found || !isPodLevel(name) {
		return resource.Quantity{}, false
	}
	if pod.Status.Resources == nil {
		return requestIn(requests, name), true
	}
	return resized(pod, name, requests, pod.Status.Resources.Requests, pod.Status.AllocatedResources), true
}
