package scheduler

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// PodRequests returns a pod's requests as the release's plugin NodeResourcesFit counts them with
// its default feature gates, plus one unit of the resource pods. Each amount saturates at
// math.MaxInt64. Zero amounts are left out.
//
// NodeResourcesFit uses these functions:
//
//   - before 1.27 calculateResource in pkg/scheduler/framework/types.go: the sum of the containers
//     or, if that is more, the largest init container, and the overhead. Unit fractions are rounded
//     up for each container.
//   - from 1.27 PodRequests in pkg/api/v1/resource/helpers.go. Fractions are rounded up once.
//   - from 1.28 sidecars, which are init containers that restart: they count with the containers,
//     and with the init containers that start after them (KEP-753).
//   - from 1.32 PodRequests in k8s.io/component-helpers/resource/helpers.go. Pod-level requests
//     replace the sum of the containers (KEP-2837).
//   - from 1.33 the requests that the kubelet has allocated and set up, while a pod is resized
//     (KEP-1287); from 1.36 on also for pod-level requests (KEP-5419).
//   - from 1.36 the node resources that claims use (KEP-5517), if the feature gate
//     DRANodeAllocatableResources is enabled: it is disabled by default in 1.36 and 1.37. They are
//     in a pod's status when it has a node. For a pending pod they are unknown: the scheduler
//     computes them for each node, after PreFilter.
//   - from 1.37 the same function compares sums over the pod instead of single containers.
//
// The API server clears a disabled feature gate's fields in the spec, and claim statuses, so these
// fields count from the first release that has them.
//
// An extender is one program for all releases and counts as the release in this project's go.mod:
// an earlier release's API server does not return the fields that this release does not count.
// Claim resources have other fields in 1.37, which this release does not read.
func PodRequests(pod *corev1.Pod) Amounts {
	// A resize can add CPU and memory that the spec does not have.
	total := Amounts{
		corev1.ResourceCPU:    PodRequest(pod, corev1.ResourceCPU),
		corev1.ResourceMemory: PodRequest(pod, corev1.ResourceMemory),
	}
	for name, part := range partsByResource(pod) {
		total[name] = PodRequest(part, name)
	}
	for name, amount := range total {
		if amount == 0 {
			delete(total, name)
		}
	}
	total[corev1.ResourcePods] = 1
	return total
}

// fewContainers is up to how many containers a pod is not split by resource.
const fewContainers = 8

// partsByResource returns, for each resource of the pod except CPU and memory, the pod
// without the containers that do not request it. The API server accepts pods with thousands of
// containers and resources: a sum over all containers for each resource would take seconds.
func partsByResource(pod *corev1.Pod) map[corev1.ResourceName]*corev1.Pod {
	parts := map[corev1.ResourceName]*corev1.Pod{}
	split := len(pod.Spec.Containers)+len(pod.Spec.InitContainers) > fewContainers
	part := func(name corev1.ResourceName) *corev1.Pod {
		if parts[name] == nil {
			parts[name] = pod
			if split {
				without := *pod
				without.Spec.Containers, without.Spec.InitContainers = nil, nil
				parts[name] = &without
			}
		}
		return parts[name]
	}
	for i := range pod.Spec.Containers {
		for name := range pod.Spec.Containers[i].Resources.Requests {
			if p := part(name); split && name != corev1.ResourceCPU && name != corev1.ResourceMemory {
				p.Spec.Containers = append(p.Spec.Containers, pod.Spec.Containers[i])
			}
		}
	}
	for i := range pod.Spec.InitContainers {
		for name := range pod.Spec.InitContainers[i].Resources.Requests {
			if p := part(name); split && name != corev1.ResourceCPU && name != corev1.ResourceMemory {
				p.Spec.InitContainers = append(p.Spec.InitContainers, pod.Spec.InitContainers[i])
			}
		}
	}
	for _, list := range []corev1.ResourceList{podLevelRequests(pod), pod.Spec.Overhead} {
		for name := range list {
			part(name)
		}
	}
	for _, name := range claimsResources(pod) {
		part(name)
	}
	delete(parts, corev1.ResourceCPU)
	delete(parts, corev1.ResourceMemory)
	return parts
}

// PodRequest returns the request of a pod for one resource, as PodRequests does. It does not
// allocate.
func PodRequest(pod *corev1.Pod, name corev1.ResourceName) int64 {
	total, found := podLevelRequest(pod, name)
	if !found {
		total = containersRequest(pod, name)
	}
	// Added to a new quantity: Add may change the decimal that a copy shares with the pod.
	var sum resource.Quantity
	sum.Add(total)
	sum.Add(requestIn(pod.Spec.Overhead, name))
	return amountOf(name, sum)
}

// requestIn returns an amount of a list, see bounded.
func requestIn(list corev1.ResourceList, name corev1.ResourceName) resource.Quantity {
	quantity, found := list[name]
	if !found {
		return resource.Quantity{}
	}
	return bounded(name, quantity)
}

// bounded returns a quantity, at most the largest int64: Quantity.Add takes time and memory by the
// exponent.
func bounded(name corev1.ResourceName, quantity resource.Quantity) resource.Quantity {
	if units := unitsOf(quantity); units == math.MaxInt64 || units == -math.MaxInt64 {
		return *resource.NewQuantity(units, resource.DecimalSI)
	}
	return rounded(name, quantity)
}

// specRequest returns the request of a container in the spec.
func specRequest(_ *corev1.Pod, c *corev1.Container, name corev1.ResourceName) resource.Quantity {
	return requestIn(c.Resources.Requests, name)
}

// sumContainers returns the most that the containers of a pod need at a time: when all run, or when
// an init container runs with the sidecars before it.
func sumContainers(pod *corev1.Pod, name corev1.ResourceName,
	request func(*corev1.Pod, *corev1.Container, corev1.ResourceName) resource.Quantity) resource.Quantity {
	var running, sidecars, starting resource.Quantity
	for i := range pod.Spec.Containers {
		running.Add(request(pod, &pod.Spec.Containers[i], name))
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if IsSidecar(c) {
			one := request(pod, c, name)
			running.Add(one)
			sidecars.Add(one)
			continue
		}
		var with resource.Quantity
		with.Add(sidecars)
		with.Add(request(pod, c, name))
		starting = most(starting, with)
	}
	return most(running, starting)
}

// most returns the larger quantity.
func most(a, b resource.Quantity) resource.Quantity {
	if a.Cmp(b) < 0 {
		return b
	}
	return a
}
