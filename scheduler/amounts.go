package scheduler

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Amount returns the amount of a resource by its name: CPU in thousandths of a core, all others in units.
func (r *Resources) Amount(name corev1.ResourceName) int64 {
	switch name {
	case corev1.ResourceCPU:
		return r.MilliCPU
	case corev1.ResourceMemory:
		return r.Memory
	case corev1.ResourceEphemeralStorage:
		return r.EphemeralStorage
	case corev1.ResourcePods:
		return r.Pods
	}
	return r.Scalar[name]
}

// Amounts returns the amounts of a list as Resources has them: CPU in thousandths of a core, all others in units.
func Amounts(list corev1.ResourceList) map[corev1.ResourceName]int64 {
	all := make(map[corev1.ResourceName]int64, len(list))
	for name, quantity := range list {
		if name == corev1.ResourceCPU {
			all[name] = quantity.MilliValue()
		} else {
			all[name] = quantity.Value()
		}
	}
	return all
}

// PodRequests returns the requests of a pod: the sum over its containers or, if that is more, the
// largest init container, and its overhead, plus one of the resource pods. Sidecars count as init
// containers, because not every release has them.
func PodRequests(pod *corev1.Pod) map[corev1.ResourceName]int64 {
	total := map[corev1.ResourceName]int64{corev1.ResourcePods: 1}
	add := func(list corev1.ResourceList) {
		for name, amount := range Amounts(list) {
			total[name] += amount
		}
	}
	for i := range pod.Spec.Containers {
		add(pod.Spec.Containers[i].Resources.Requests)
	}
	for i := range pod.Spec.InitContainers {
		for name, amount := range Amounts(pod.Spec.InitContainers[i].Resources.Requests) {
			if amount > total[name] {
				total[name] = amount
			}
		}
	}
	add(pod.Spec.Overhead)
	return total
}

// FormatAmount returns an amount as users write it, such as 1500m of CPU.
func FormatAmount(name corev1.ResourceName, amount int64) string {
	switch {
	case name == corev1.ResourceCPU:
		return resource.NewMilliQuantity(amount, resource.DecimalSI).String()
	case name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
		return resource.NewQuantity(amount, resource.BinarySI).String()
	}
	return fmt.Sprint(amount)
}
