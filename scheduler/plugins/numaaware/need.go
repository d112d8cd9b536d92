package numaaware

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

type amounts = scheduler.Amounts

type need struct {
	init []initNeed
	// running are the sidecars in their order, and then the containers.
	running []amounts
	// all is the most that the pod needs at a time, and pod a list of it.
	all amounts
	pod []amounts
}

// initNeed is an init container that ends before the containers start.
type initNeed struct {
	Need amounts
	// Sidecars is the number of sidecars that start before it and keep their resources.
	Sidecars int
}

// needOf returns the resources that the kubelet aligns: devices, and for Guaranteed pods also
// memory, huge pages, and the CPUs of containers that request whole CPUs. Other containers share
// the node's remaining CPUs (guaranteedCPUs in pkg/kubelet/cm/cpumanager/policy_static.go;
// memorymanager, devicemanager). For pods with pod-level resources, the kubelet aligns devices
// alone, unless its feature gate PodLevelResourceManagers is set, which is disabled by default. It
// is nil if there is nothing to align.
func needOf(pod *corev1.Pod) *need {
	guaranteed := isGuaranteed(pod) && !scheduler.HasPodLevelResources(pod)
	n := &need{all: amounts{}}
	starting, sidecars := amounts{}, amounts{}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		one := aligned(c, guaranteed)
		if scheduler.IsSidecar(c) {
			n.running = append(n.running, one)
			n.all.Add(one, 1)
			sidecars.Add(one, 1)
			continue
		}
		n.init = append(n.init, initNeed{Need: one, Sidecars: len(n.running)})
		with := sidecars.Clone()
		with.Add(one, 1)
		raise(starting, with)
	}
	for i := range pod.Spec.Containers {
		one := aligned(&pod.Spec.Containers[i], guaranteed)
		n.running = append(n.running, one)
		n.all.Add(one, 1)
	}
	raise(n.all, starting)
	if len(n.all) == 0 {
		return nil
	}
	n.pod = []amounts{n.all}
	return n
}

// raise sets the amounts that are less than other's.
func raise(a, other amounts) {
	for name, amount := range other {
		if amount > a[name] {
			a[name] = amount
		}
	}
}

// milliCPUs is one CPU as an amount.
const milliCPUs = 1000

// aligned returns the requests of a container that the kubelet aligns.
func aligned(c *corev1.Container, guaranteed bool) amounts {
	all := scheduler.NewAmounts(c.Resources.Requests)
	for name, amount := range all {
		drop := amount == 0
		switch {
		case name == corev1.ResourceEphemeralStorage:
			drop = true
		case name == corev1.ResourceCPU:
			drop = drop || !guaranteed || amount%milliCPUs != 0
		case name == corev1.ResourceMemory, isHugePage(name):
			drop = drop || !guaranteed
		}
		if drop {
			delete(all, name)
		}
	}
	return all
}

func isHugePage(name corev1.ResourceName) bool {
	const prefix = corev1.ResourceHugePagesPrefix
	return len(name) > len(prefix) && name[:len(prefix)] == prefix
}

// isGuaranteed reports whether each container has limits of CPU and memory, and requests as much.
// The API server sets requests that are missing.
func isGuaranteed(pod *corev1.Pod) bool {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			requests := scheduler.NewAmounts(list[i].Resources.Requests)
			limits := scheduler.NewAmounts(list[i].Resources.Limits)
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				if limits[name] == 0 || requests[name] != limits[name] {
					return false
				}
			}
		}
	}
	return len(pod.Spec.Containers) > 0
}
