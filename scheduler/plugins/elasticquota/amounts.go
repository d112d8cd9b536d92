package elasticquota

import (
	"sort"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// amounts are amounts of resources: CPU in thousandths of a core, all others in units. A pod requests one of the resource pods.
type amounts map[corev1.ResourceName]int64

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

// missing returns the amounts that a lacks to cover need.
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

// freeOf returns the free amounts of a node for the resources in need; they may be negative.
func freeOf(node scheduler.NodeInfo, need amounts) amounts {
	allocatable, used := node.Allocatable(), node.Requested()
	free := amounts{}
	for name := range need {
		free[name] = allocatable.Amount(name) - used.Amount(name)
	}
	return free
}
