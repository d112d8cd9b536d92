//go:build ignore

package scheduler

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// containersRequest returns the request of all containers in a pod. From 1.27 on a feature gate,
// disabled by default, adds the resize status; it does not count here.
func containersRequest(pod *corev1.Pod, name corev1.ResourceName) resource.Quantity {
	return sumContainers(pod, name, specRequest)
}
