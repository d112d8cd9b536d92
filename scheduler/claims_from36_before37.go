package scheduler

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// claimsRequest returns the amount of a node resource that a pod's claims use. The scheduler writes
// it to the pod's status when it has chosen the node (assume in pkg/scheduler/schedule_one.go).
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
