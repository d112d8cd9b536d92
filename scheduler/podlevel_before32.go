//go:build ignore

package scheduler

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// HasPodLevelResources reports whether requests or limits are set for the pod as a whole. These
// releases do not have them.
func HasPodLevelResources(*corev1.Pod) bool { return false }

func podLevelRequests(*corev1.Pod) corev1.ResourceList { return nil }

func podLevelRequest(*corev1.Pod, corev1.ResourceName) (request resource.Quantity, found bool) {
	return resource.Quantity{}, false
}
