package scheduler

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// claimsRequest returns how much of a resource of its node the claims of a pod use. The scheduler
// writes it to the status of the pod when it has chosen the node (assume of
// pkg/scheduler/schedule_one.go).
func claimsRequest(pod *corev1.Pod, name corev1.ResourceName) resource.Quantity {
	var sum resource.Quantity
	for i := range pod.Status.NodeAllocatableResourceClaimStatuses {
		sum.Add(requestIn(pod.Status.NodeAllocatableResourceClaimStatuses[i].Resources, name))
	}
	return sum
}

// claimsResources returns the names of these resources.
func claimsResources(pod *corev1.Pod) []corev1.ResourceName {
	var names []corev1.ResourceName
	for i := range pod.Status.NodeAllocatableResourceClaimStatuses {
		for name := range pod.Status.NodeAllocatableResourceClaimStatuses[i].Resources {
			names = append(names, name)
		}
	}
	return names
}
