package scheduler

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Amount returns the amount of a resource by its name: CPU in thousandths of a core, all others in
// units.
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

// Amounts are amounts of resources as Resources has them: CPU in thousandths of a core, all others
// in units.
type Amounts map[corev1.ResourceName]int64

// NewAmounts returns the amounts of a list.
func NewAmounts(list corev1.ResourceList) Amounts {
	all := make(Amounts, len(list))
	for name := range list {
		all[name] = amountIn(list, name)
	}
	return all
}

// Add adds other, times 1 or -1.
func (a Amounts) Add(other Amounts, times int64) {
	for name, amount := range other {
		a[name] += times * amount
	}
}

// Clone returns a copy.
func (a Amounts) Clone() Amounts {
	c := make(Amounts, len(a))
	c.Add(a, 1)
	return c
}

// Missing returns the amounts that a lacks to cover need.
func (a Amounts) Missing(need Amounts) Amounts {
	short := Amounts{}
	for name, amount := range need {
		if amount > 0 && amount > a[name] {
			short[name] = amount - a[name]
		}
	}
	return short
}

// First returns the first resource by name, or "" if there is none.
func (a Amounts) First() corev1.ResourceName {
	var first corev1.ResourceName
	for name := range a {
		if first == "" || name < first {
			first = name
		}
	}
	return first
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
func PodRequests(pod *corev1.Pod) Amounts {
	total := Amounts{corev1.ResourcePods: 1}
	for i := range pod.Spec.Containers {
		total.Add(NewAmounts(pod.Spec.Containers[i].Resources.Requests), 1)
	}
	for i := range pod.Spec.InitContainers {
		for name, amount := range NewAmounts(pod.Spec.InitContainers[i].Resources.Requests) {
			if amount > total[name] {
				total[name] = amount
			}
		}
	}
	total.Add(NewAmounts(pod.Spec.Overhead), 1)
	return total
}

// PodRequest returns the request of a pod for one resource, as PodRequests does. It does not
// allocate.
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

// PodFinished reports whether a pod has succeeded or failed, so that it takes no room. The
// scheduler's informer has no such pods from 1.22 on.
func PodFinished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// FormatAmount returns an amount as users write it, such as 1500m of CPU.
func FormatAmount(name corev1.ResourceName, amount int64) string {
	switch {
	case name == corev1.ResourceCPU:
		return resource.NewMilliQuantity(amount, resource.DecimalSI).String()
	case name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage ||
		strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
		return resource.NewQuantity(amount, resource.BinarySI).String()
	}
	return fmt.Sprint(amount)
}
