package kubeapi

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// PodReady reports whether the condition Ready of a pod is true.
func PodReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
