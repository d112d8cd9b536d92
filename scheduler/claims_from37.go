//go:build ignore

package scheduler

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// claimsRequest returns how much of a resource of its node the claims of a pod use: the capacity of
// devices, and their overhead for the pod and for each container
// (addDRANodeAllocatableClaimResources of k8s.io/component-helpers/resource/helpers.go). The
// scheduler writes it to the status of the pod when it has chosen the node (assume of
// pkg/scheduler/schedule_one.go).
func claimsRequest(pod *corev1.Pod, name corev1.ResourceName) resource.Quantity {
	var sum resource.Quantity
	for i := range pod.Status.NodeAllocatableResourceClaimStatuses {
		claim := &pod.Status.NodeAllocatableResourceClaimStatuses[i]
		for j := range claim.Mapping {
			if m := &claim.Mapping[j]; m.Name == name && m.Quantity != nil {
				sum.Add(bounded(name, *m.Quantity))
			}
		}
		for j := range claim.Overhead {
			o := &claim.Overhead[j]
			if o.Name != name {
				continue
			}
			if o.PerPod != nil {
				sum.Add(bounded(name, *o.PerPod))
			}
			for k := 0; o.PerContainer != nil && k < len(claim.Containers); k++ {
				sum.Add(bounded(name, *o.PerContainer))
			}
		}
	}
	return sum
}

// claimsResources returns the names of these resources.
func claimsResources(pod *corev1.Pod) []corev1.ResourceName {
	var names []corev1.ResourceName
	for i := range pod.Status.NodeAllocatableResourceClaimStatuses {
		claim := &pod.Status.NodeAllocatableResourceClaimStatuses[i]
		for j := range claim.Mapping {
			names = append(names, claim.Mapping[j].Name)
		}
		for j := range claim.Overhead {
			names = append(names, claim.Overhead[j].Name)
		}
	}
	return names
}
