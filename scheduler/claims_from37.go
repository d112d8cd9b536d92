//go:build ignore

package scheduler

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// claimsRequest returns the amount of a node resource that a pod's claims use: the device capacity,
// and the overhead for the pod and for each container (addDRANodeAllocatableClaimResources in
// k8s.io/component-helpers/resource/helpers.go). The scheduler writes it to the pod's status when
// it has chosen the node (assume in pkg/scheduler/schedule_one.go).
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
