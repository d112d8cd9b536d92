package scheduler

import (
	"fmt"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Amount returns a resource's amount by name: CPU in millicores, all other resources in units.
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

// NewResources returns a list's amounts.
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

// Plus returns the resources plus amounts, times 1 or -1. The sums saturate. Scalar resources of
// which nothing is left are removed.
func (r *Resources) Plus(other Amounts, times int64) Resources {
	sum, copied := *r, false
	for name, amount := range other {
		switch amount *= times; name {
		case corev1.ResourceCPU:
			sum.MilliCPU = Sum(sum.MilliCPU, amount)
		case corev1.ResourceMemory:
			sum.Memory = Sum(sum.Memory, amount)
		case corev1.ResourceEphemeralStorage:
			sum.EphemeralStorage = Sum(sum.EphemeralStorage, amount)
		case corev1.ResourcePods:
			sum.Pods = Sum(sum.Pods, amount)
		default:
			if !copied {
				sum.Scalar, copied = Amounts(r.Scalar).Clone(), true
			}
			if sum.Scalar[name] = Sum(sum.Scalar[name], amount); sum.Scalar[name] == 0 {
				delete(sum.Scalar, name)
			}
		}
	}
	return sum
}

// Saturated reports whether an amount is the largest int64, so that part of the sum may be lost.
func (r *Resources) Saturated() bool {
	return r.MilliCPU == math.MaxInt64 || r.Memory == math.MaxInt64 || r.EphemeralStorage == math.MaxInt64 ||
		Amounts(r.Scalar).Saturated()
}

// Amounts are resource amounts as in Resources: CPU in millicores, all other resources in units.
type Amounts map[corev1.ResourceName]int64

// NewAmounts returns a list's amounts.
func NewAmounts(list corev1.ResourceList) Amounts {
	all := make(Amounts, len(list))
	for name := range list {
		all[name] = amountIn(list, name)
	}
	return all
}

// Add adds other, times 1 or -1. The sums saturate.
func (a Amounts) Add(other Amounts, times int64) {
	for name, amount := range other {
		a[name] = Sum(a[name], times*amount)
	}
}

// Saturated reports whether an amount is the largest int64, so that part of the sum may be lost.
func (a Amounts) Saturated() bool {
	for _, amount := range a {
		if amount == math.MaxInt64 {
			return true
		}
	}
	return false
}

// Sum returns a + b, between -math.MaxInt64 and math.MaxInt64. Requests are added with it: the API
// server accepts requests whose sum is beyond an int64, and a sum below zero is within every limit.
func Sum(a, b int64) int64 {
	switch {
	case b > 0 && a > math.MaxInt64-b:
		return math.MaxInt64
	case b < 0 && a < -math.MaxInt64-b:
		return -math.MaxInt64
	}
	return a + b
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
	return amountOf(name, list[name])
}

// amountOf returns a quantity of a resource, rounded up, and between -math.MaxInt64 and
// math.MaxInt64.
func amountOf(name corev1.ResourceName, quantity resource.Quantity) int64 {
	amount := unitsOf(quantity)
	switch {
	case name != corev1.ResourceCPU || amount == 0:
		return amount
	case amount > math.MaxInt64/1000:
		return math.MaxInt64
	case amount < -math.MaxInt64/1000:
		return -math.MaxInt64
	}
	return quantity.MilliValue()
}

// unitsOf returns a quantity in units, rounded up, and between -math.MaxInt64 and math.MaxInt64.
// Quantity.Value returns an arbitrary number outside of this range. Its time does not depend on the
// exponent: resource.ParseQuantity accepts 1e2000000000, which is too long to compare as a decimal.
func unitsOf(quantity resource.Quantity) int64 {
	if quantity.IsZero() {
		return 0
	}
	if units, ok := quantity.AsInt64(); ok {
		return units
	}
	quantity = quantity.DeepCopy()
	quantity.RoundUp(0)
	if units, ok := quantity.AsInt64(); ok {
		return units
	}
	// RoundUp leaves a positive exponent.
	if units, ok := quantity.AsDec().Unscaled(); ok && quantity.AsDec().Scale() == 0 {
		return units
	}
	return int64(quantity.Sign()) * math.MaxInt64
}

// PodPriority returns a pod's priority, 0 if it has none.
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
