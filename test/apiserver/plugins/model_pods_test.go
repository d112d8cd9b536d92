//go:build linux

package plugins

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// The methods in this file choose by chance. The caller holds w.mu.

// chance returns true in one of n cases.
func (w *world) chance(n int) bool { return w.random.IntN(n) == 0 }

// between returns a number from least to most.
func (w *world) between(least, most int64) int64 { return least + w.random.Int64N(most-least+1) }

// nameOf returns a new name.
func (w *world) nameOf(kind string) string {
	w.names++
	return fmt.Sprintf("%s-%d", kind, w.names)
}

// anyNamespace returns the namespace of a team, or the one of pods without a team.
func (w *world) anyNamespace() string {
	if i := w.random.IntN(5); i < 4 {
		return fmt.Sprintf("%s-%c", w.name, 'a'+i)
	}
	return w.name
}

// newPod returns a pod of one of several kinds.
func (w *world) newPod(namespace string) *corev1.Pod {
	pod := w.pod(w.nameOf("pod"), nil)
	pod.Namespace = namespace
	main := &pod.Spec.Containers[0]
	switch w.random.IntN(10) {
	case 0, 1, 2:
		w.guarantee(pod)
	case 3, 4:
		main.Resources = same(amountsOf(w.between(1, 2)*500, 256))
		delete(main.Resources.Limits, corev1.ResourceCPU)
		addGPU(main, w.between(1, 9)*100)
	case 5:
		main.Resources.Requests = amountsOf(500, 256)
		addGPU(main, w.between(1, 2)*wholeDevice)
	default:
		main.Resources.Requests = amountsOf(w.between(1, 12)*250, w.between(1, 8)*256)
		w.extend(pod)
	}
	if namespace != w.name {
		if w.chance(4) {
			pod.Spec.PriorityClassName = important
		}
		if w.chance(20) {
			pod.Labels = map[string]string{protectedLabel: "false"}
		}
	}
	return pod
}

// protectedLabel keeps a pod from being evicted, if it is false.
const protectedLabel = "pmk-sched.io/preemptible"

// guarantee makes a pod one of the class Guaranteed, with whole cores and sometimes a share of a
// GPU.
func (w *world) guarantee(pod *corev1.Pod) {
	main := &pod.Spec.Containers[0]
	main.Resources = same(amountsOf(w.between(1, 3)*1000, 256))
	if w.chance(3) {
		second := corev1.Container{Name: "second", Image: main.Image,
			Resources: same(amountsOf(w.between(1, 2)*1000, 256))}
		pod.Spec.Containers = append(pod.Spec.Containers, second)
	} else if w.chance(4) {
		addGPU(main, w.between(1, 9)*100)
	}
}

// extend gives some pods init containers, sidecars, and resources of the pod as a whole, where the
// release has them by default.
func (w *world) extend(pod *corev1.Pod) {
	add := func(name string, policy *corev1.ContainerRestartPolicy) {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: name,
			Image: pod.Spec.Containers[0].Image, RestartPolicy: policy,
			Resources: corev1.ResourceRequirements{Requests: amountsOf(w.between(1, 12)*250, 256)}})
	}
	always := corev1.ContainerRestartPolicyAlways
	if w.chance(6) {
		add("init", nil)
	}
	if w.Release.Minor >= 29 && w.chance(5) {
		add("sidecar", &always)
		if w.chance(2) {
			add("late", nil)
		}
	}
	if w.Release.Minor >= 34 && len(pod.Spec.InitContainers) == 0 && w.chance(5) {
		least := pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU]
		pod.Spec.Resources = &corev1.ResourceRequirements{
			Requests: amountsOf(least.MilliValue()+w.between(0, 8)*250, w.between(8, 16)*256)}
	}
}

// newGang returns the pods of a gang, which are alike, and its size. If labelled is false, its size
// is in a PodGroup.
func (w *world) newGang() (pods []*corev1.Pod, size int, labelled bool) {
	namespace, name, n := w.anyNamespace(), w.nameOf("gang"), int(w.between(2, 5))
	if size = n; n > 2 && w.chance(4) {
		size--
	}
	labelled = w.chance(2)
	first := w.newPod(namespace)
	for i := range n {
		pod := first.DeepCopy()
		pod.Name = fmt.Sprintf("%s-%d", name, i)
		pod.Labels = map[string]string{groupLabel: name}
		if labelled {
			pod.Labels[memberLabel] = strconv.Itoa(size)
		}
		pods = append(pods, pod)
	}
	return pods, size, labelled
}

// newLimits returns a min and a max.
func (w *world) newLimits() (least, most sums) {
	most = sums{corev1.ResourceCPU: w.between(6, 28) * 1000, corev1.ResourceMemory: w.between(8, 24) << 30,
		corev1.ResourcePods: w.between(6, 30), gpuMilli: w.between(5, 50) * 100}
	least = sums{corev1.ResourceCPU: w.between(1, most[corev1.ResourceCPU]/1000) * 500,
		gpuMilli: w.between(0, most[gpuMilli]/200) * 100}
	return least, most
}

func amountsOf(milliCPU, mebibytes int64) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(milliCPU, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(mebibytes<<20, resource.BinarySI)}
}

func same(list corev1.ResourceList) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: list.DeepCopy(), Limits: list.DeepCopy()}
}

func addGPU(c *corev1.Container, milli int64) {
	if c.Resources.Limits == nil {
		c.Resources.Limits = corev1.ResourceList{}
	}
	amount := *resource.NewQuantity(milli, resource.DecimalSI)
	c.Resources.Requests[gpuMilli], c.Resources.Limits[gpuMilli] = amount, amount
}

// mayComplete reports whether the kubelet has started a pod, which may then finish.
func mayComplete(r *record) bool { return r.takes() && r.pod.Status.Phase == corev1.PodRunning }

// mayResize reports whether the model resizes a pod: not one whose CPUs are aligned, which a
// kubelet refuses, nor one with resources of the pod as a whole.
func mayResize(r *record) bool {
	return mayComplete(r) && len(alignedCPU(r.pod)) == 0 && r.pod.Spec.Resources == nil &&
		len(r.pod.Spec.InitContainers) == 0 && r.need()[gpuMilli] == 0 && !isResized(r.pod)
}
