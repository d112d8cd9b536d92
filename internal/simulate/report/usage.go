package report

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	componentresource "k8s.io/component-helpers/resource"
)

// Usage sums what nodes have and what the pods on them request. The zero value is ready to use.
type Usage struct {
	Nodes, Pods int
	allocatable corev1.ResourceList
	requested   corev1.ResourceList
}

// AddNode adds what a node has.
func (u *Usage) AddNode(node *corev1.Node) {
	u.Nodes++
	u.allocatable = sum(u.allocatable, node.Status.Allocatable)
}

// AddPod adds what a pod requests, as a scheduler counts it.
func (u *Usage) AddPod(pod *corev1.Pod) {
	u.Pods++
	requests := componentresource.PodRequests(pod, componentresource.PodResourcesOptions{UseStatusResources: true})
	requests[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
	u.requested = sum(u.requested, requests)
}

func sum(total, more corev1.ResourceList) corev1.ResourceList {
	if total == nil {
		total = corev1.ResourceList{}
	}
	for name, quantity := range more {
		t := total[name]
		t.Add(quantity)
		total[name] = t
	}
	return total
}

// Compare returns the utilization of every resource that the nodes have, CPU, memory and pods first.
func Compare(before, after *Usage) []Utilization {
	var names []string
	for name, quantity := range before.allocatable {
		if !quantity.IsZero() {
			names = append(names, string(name))
		}
	}
	first := []string{string(corev1.ResourceCPU), string(corev1.ResourceMemory), string(corev1.ResourcePods)}
	slices.SortFunc(names, func(a, b string) int {
		if at, bt := slices.Index(first, a), slices.Index(first, b); at >= 0 || bt >= 0 {
			return rank(at) - rank(bt)
		}
		return strings.Compare(a, b)
	})
	var all []Utilization
	for _, name := range names {
		total := before.allocatable[corev1.ResourceName(name)]
		all = append(all, Utilization{
			Resource: name, Allocatable: total.String(),
			Before: part(before.requested[corev1.ResourceName(name)], total),
			After:  part(after.requested[corev1.ResourceName(name)], after.allocatable[corev1.ResourceName(name)]),
		})
	}
	return all
}

// rank orders what is not in a list after what is.
func rank(index int) int {
	if index < 0 {
		return 1 << 10
	}
	return index
}

func part(requested, total resource.Quantity) float64 {
	if total.IsZero() {
		return 0
	}
	return requested.AsApproximateFloat64() / total.AsApproximateFloat64()
}
