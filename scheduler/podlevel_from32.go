package scheduler

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// HasPodLevelResources reports whether requests or limits are set for the pod as a whole
// (IsPodLevelResourcesSet of k8s.io/component-helpers/resource/helpers.go).
func HasPodLevelResources(pod *corev1.Pod) bool {
	r := pod.Spec.Resources
	return r != nil && (hasPodLevel(r.Requests) || hasPodLevel(r.Limits))
}

func hasPodLevel(list corev1.ResourceList) bool {
	for name := range list {
		if isPodLevel(name) {
			return true
		}
	}
	return false
}

// isPodLevel reports whether a resource can be set for the pod as a whole. The API server of 1.32
// refuses huge pages there.
func isPodLevel(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory ||
		strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// podLevelRequests returns the requests in the spec for the pod as a whole.
func podLevelRequests(pod *corev1.Pod) corev1.ResourceList {
	if pod.Spec.Resources == nil {
		return nil
	}
	return pod.Spec.Resources.Requests
}
