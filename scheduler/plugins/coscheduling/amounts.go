package coscheduling

import (
	"sort"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

type amounts = scheduler.Amounts

// sumOf returns a plus other's amounts for the resources in a.
func sumOf(a, other amounts) amounts {
	sum := amounts{}
	for name, amount := range a {
		sum[name] = scheduler.Sum(amount, other[name])
	}
	return sum
}

func covers(a, need amounts) bool { return len(a.Missing(need)) == 0 }

// exceeds reports whether a has more of any resource than other.
func exceeds(a, other amounts) bool {
	for name, amount := range a {
		if amount > other[name] {
			return true
		}
	}
	return false
}

// needOf returns the minimum requests for count pods: for each resource the sum of the smallest
// requests.
func needOf(pods []*corev1.Pod, count int) amounts {
	each := map[corev1.ResourceName][]int64{}
	for _, pod := range pods {
		for name, amount := range scheduler.PodRequests(pod) {
			each[name] = append(each[name], amount)
		}
	}
	need := amounts{}
	for name, requests := range each {
		sort.Slice(requests, func(i, j int) bool { return requests[i] < requests[j] })
		// Pods that do not request the resource are the smallest.
		for i := 0; i < count-(len(pods)-len(requests)) && i < len(requests); i++ {
			need[name] = scheduler.Sum(need[name], requests[i])
		}
	}
	return need
}

// canEvict returns a function that reports whether preemption for pod may evict another pod.
func canEvict(pod *corev1.Pod) func(other *corev1.Pod) bool {
	never := pod.Spec.PreemptionPolicy != nil && *pod.Spec.PreemptionPolicy == corev1.PreemptNever
	return func(other *corev1.Pod) bool {
		return !never && scheduler.PodPriority(other) < scheduler.PodPriority(pod)
	}
}

// freeOf returns the free amounts of the nodes for the resources in need. It is more than a group
// can use: see placeable. Pods for which evict is true do not count.
func freeOf(nodes []scheduler.NodeInfo, need amounts, evict func(*corev1.Pod) bool) amounts {
	// Slices, because there may be thousands of nodes.
	names := make([]corev1.ResourceName, 0, len(need))
	for name := range need {
		names = append(names, name)
	}
	sums := make([]int64, len(names))
	for _, node := range nodes {
		object := node.Node()
		if object == nil || object.Spec.Unschedulable {
			continue
		}
		allocatable, used := node.Allocatable(), node.Requested()
		var evicted amounts
		if evict != nil {
			evicted = requestedBy(node, evict)
		}
		for i, name := range names {
			if left := scheduler.Sum(allocatable.Amount(name)-used.Amount(name), evicted[name]); left > 0 {
				sums[i] = scheduler.Sum(sums[i], left)
			}
		}
	}
	free := amounts{}
	for i, name := range names {
		free[name] = sums[i]
	}
	return free
}

func requestedBy(node scheduler.NodeInfo, counts func(*corev1.Pod) bool) amounts {
	sum := amounts{}
	for i := 0; i < node.PodCount(); i++ {
		if counts(node.Pod(i)) {
			sum.Add(scheduler.PodRequests(node.Pod(i)), 1)
		}
	}
	return sum
}
