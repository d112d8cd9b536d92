//go:build ignore

package scheduler

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// podLevelRequest returns the request for the pod as a whole, if it has one. While the pod is
// resized, it is the largest of the requests in its spec and its status; a resource that is in the
// status alone counts too if the spec has another resource.
func podLevelRequest(pod *corev1.Pod, name corev1.ResourceName) (request resource.Quantity, found bool) {
	requests := podLevelRequests(pod)
	if !isPodLevel(name) || !hasPodLevel(requests) {
		return resource.Quantity{}, false
	}
	lists := []corev1.ResourceList{requests, nil, nil}
	if pod.Status.Resources != nil {
		lists[1], lists[2] = pod.Status.Resources.Requests, pod.Status.AllocatedResources
		if resizeInfeasible(pod) {
			lists[0] = nil
		}
	}
	for _, list := range lists {
		if _, has := list[name]; has {
			request, found = most(request, requestIn(list, name)), true
		}
	}
	return request, found
}
