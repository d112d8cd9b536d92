package elasticquota

import (
	"fmt"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// amounts are amounts of resources: CPU in thousandths of a core, all others in units. A pod requests one of the resource pods.
type amounts map[corev1.ResourceName]int64

// requested returns what a pod requests: the sum over its containers or, if that is more, the largest init container, and its overhead. Sidecars count
// as init containers, because not every release has them.
func requested(pod *corev1.Pod) amounts {
	total := amounts{corev1.ResourcePods: 1}
	for i := range pod.Spec.Containers {
		total.add(listed(pod.Spec.Containers[i].Resources.Requests), 1)
	}
	for i := range pod.Spec.InitContainers {
		for name, amount := range listed(pod.Spec.InitContainers[i].Resources.Requests) {
			if amount > total[name] {
				total[name] = amount
			}
		}
	}
	total.add(listed(pod.Spec.Overhead), 1)
	return total
}

func listed(list corev1.ResourceList) amounts {
	all := amounts{}
	for name, quantity := range list {
		if name == corev1.ResourceCPU {
			all[name] = quantity.MilliValue()
		} else {
			all[name] = quantity.Value()
		}
	}
	return all
}

// add adds other, times 1 or -1.
func (a amounts) add(other amounts, times int64) {
	for name, amount := range other {
		a[name] += times * amount
	}
}

func (a amounts) clone() amounts {
	c := make(amounts, len(a))
	c.add(a, 1)
	return c
}

// missing returns what need has more than a, of the resources of need.
func (a amounts) missing(need amounts) amounts {
	short := amounts{}
	for name, amount := range need {
		if amount > 0 && amount > a[name] {
			short[name] = amount - a[name]
		}
	}
	return short
}

// helps reports whether a has some of a resource that is missing.
func (a amounts) helps(missing amounts) bool {
	for name := range missing {
		if a[name] > 0 {
			return true
		}
	}
	return false
}

// first returns the first resource by name.
func (a amounts) first() corev1.ResourceName {
	names := make([]string, 0, len(a))
	for name := range a {
		names = append(names, string(name))
	}
	sort.Strings(names)
	if len(names) == 0 {
		return ""
	}
	return corev1.ResourceName(names[0])
}

// freeOf returns what a node has left of the resources in need; it may be negative.
func freeOf(node scheduler.NodeInfo, need amounts) amounts {
	allocatable, used := node.Allocatable(), node.Requested()
	free := amounts{}
	for name := range need {
		free[name] = amountOf(allocatable, name) - amountOf(used, name)
	}
	return free
}

func amountOf(r scheduler.Resources, name corev1.ResourceName) int64 {
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

// text returns an amount as users write it.
func text(name corev1.ResourceName, amount int64) string {
	switch {
	case name == corev1.ResourceCPU:
		return resource.NewMilliQuantity(amount, resource.DecimalSI).String()
	case name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
		return resource.NewQuantity(amount, resource.BinarySI).String()
	}
	return fmt.Sprint(amount)
}
