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

// NewResources returns the amounts of a list.
func NewResources(list corev1.ResourceList) Resources {
	r := Resources{Scalar: map[corev1.ResourceName]int64{}}
	for name := range list {
		switch amount := amountIn(list, name); name {
		case corev1.ResourceCPU:
			r.MilliCPU = amount
		case corev1.ResourceMemory:
			r.Memory = amount
		case corev1.ResourceEphemeralStorage:
			r.EphemeralStorage = amount
		case corev1.ResourcePods:
			r.Pods = amount
		default:
			r.Scalar[name] = amount
		}
	}
	return r
}

// Amounts returns the amounts of a list as Resources has them: CPU in thousandths of a core, all others in units.
func Amounts(list corev1.ResourceList) map[corev1.ResourceName]int64 {
	all := make(map[corev1.ResourceName]int64, len(list))
	for name := range list {
		all[name] = amountIn(list, name)
	}
	return all
}

func amountIn(list corev1.ResourceList, name corev1.ResourceName) int64 {
	quantity := list[name]
	if name == corev1.ResourceCPU {
		return quantity.MilliValue()
	}
	return quantity.Value()
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

// PodRequest returns the request of a pod for one resource, as PodRequests does. It does not allocate.
func PodRequest(pod *corev1.Pod, name corev1.ResourceName) int64 {
	total := int64(0)
	for i := range pod.Spec.Containers {
		total += amountIn(pod.Spec.Containers[i].Resources.Requests, name)
	}
	for i := range pod.Spec.InitContainers {
		if amount := amountIn(pod.Spec.InitContainers[i].Resources.Requests, name); amount > total {
			total = amount
		}
	}
	return total + amountIn(pod.Spec.Overhead, name)
}

// PodPriority returns the priority of a pod, 0 if it has none.
func PodPriority(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}

// PodFinished reports whether a pod has succeeded or failed, so that it takes no room. The scheduler's informer has
// no such pods from 1.22 on.
func PodFinished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
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
