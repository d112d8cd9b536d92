//go:build linux

package plugins

import (
	corev1 "k8s.io/api/core/v1"
)

// sums are amounts by resource: CPU in thousandths of a core, all others in units.
type sums map[corev1.ResourceName]int64

func (s sums) add(other sums, times int64) {
	for name, amount := range other {
		s[name] += times * amount
	}
}

// covers reports whether s has all of need.
func (s sums) covers(need sums) bool {
	for name, amount := range need {
		if amount > 0 && s[name] < amount {
			return false
		}
	}
	return true
}

func (s sums) clone() sums {
	c := sums{}
	c.add(s, 1)
	return c
}

// raise sets the amounts of s that are less than those of other.
func (s sums) raise(other sums) {
	for name, amount := range other {
		s[name] = max(s[name], amount)
	}
}

func sumsOf(list corev1.ResourceList) sums {
	all := sums{}
	for name, quantity := range list {
		if name == corev1.ResourceCPU {
			all[name] = quantity.MilliValue()
		} else {
			all[name] = quantity.Value()
		}
	}
	return all
}

// requestOf returns what a pod of the model takes from its node. It repeats the rules of Kubernetes
// for the pods that the model creates, without the plugins' code: sidecars count with the
// containers and with the init containers after them, resources of the pod as a whole replace those
// of its containers, and a container that is being resized counts with the larger of its old and
// new requests (KEP-753, KEP-2837, KEP-1287).
func requestOf(pod *corev1.Pod) sums {
	running, sidecars, starting := sums{}, sums{}, sums{}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		one := sumsOf(c.Resources.Requests)
		if c.RestartPolicy != nil {
			running.add(one, 1)
			sidecars.add(one, 1)
			continue
		}
		one.add(sidecars, 1)
		starting.raise(one)
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		one := sumsOf(c.Resources.Requests)
		for _, status := range pod.Status.ContainerStatuses {
			if status.Name == c.Name {
				one.raise(sumsOf(status.AllocatedResources))
				if status.Resources != nil {
					one.raise(sumsOf(status.Resources.Requests))
				}
			}
		}
		running.add(one, 1)
	}
	running.raise(starting)
	if pod.Spec.Resources != nil {
		for name, amount := range sumsOf(pod.Spec.Resources.Requests) {
			running[name] = amount
		}
	}
	running[corev1.ResourcePods] = 1
	return running
}

// alignedCPU returns the cores of the containers that a kubelet with the policy single-numa-node
// gives CPUs of one zone each. In the model these are the containers of pods of the class
// Guaranteed, which have whole cores and no init containers.
func alignedCPU(pod *corev1.Pod) (cores []int64) {
	if pod.Spec.Resources != nil {
		return nil
	}
	for i := range pod.Spec.Containers {
		limit, limited := pod.Spec.Containers[i].Resources.Limits[corev1.ResourceCPU]
		if !limited {
			return nil
		}
		cores = append(cores, limit.Value())
	}
	return cores
}

// needsTopology reports whether NUMAAware places a pod only on nodes with a topology, if its
// argument unaligned is Reject: a pod with devices or of the class Guaranteed.
func needsTopology(pod *corev1.Pod) bool {
	return len(alignedCPU(pod)) > 0 || requestOf(pod)[gpuMilli] > 0
}
