//go:build ignore

package scheduler

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// podLevelRequest returns the request for the pod as a whole, if there is one.
func podLevelRequest(pod *corev1.Pod, name corev1.ResourceName) (request resource.Quantity, found bool) {
	requests := podLevelRequests(pod)
	if _, found = requests[name]; !found || !isPodLevel(name) {
		return resource.Quantity{}, false
	}
	return requestIn(requests, name), true
}
