//go:build linux && (cases || releases)

package plugins

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// odd are amounts that a user may write. resource.ParseQuantity takes hours for some that the API
// server would itself parse in a pod; such amounts are in the objects of plugins only.
func odd() []string {
	return []string{"0", "1", "10m", "100m", "1", "2", "500", "1500m", "0.1", "1n", "1e-9", "-1", "64Mi", "300",
		"1e18", "-9223372036854775808", "9223372036854775807", "9223372036854775808", "4Ei", "6Ei", "8Ei", "1e30", "1e400"}
}

// newPod returns a pod of which some parts are odd.
func (a *attacker) newPod() *corev1.Pod {
	pod := a.x.pod(fmt.Sprint("p-", a.n), amounts{"cpu": pick(a.random, []string{"1m", "10m", "100m", "1"})})
	pod.Labels = map[string]string{}
	for range a.random.IntN(4) {
		a.spoil(pod)
	}
	restrain(pod)
	return pod
}

// restrain changes a pod that bypasses the scheduler. On the nodes of others it is small: the
// kubelet rejects larger ones. On the node of the hostile agent it requests neither CPU nor memory:
// kube-scheduler adds those without a check for overflow (pkg/scheduler/framework/types.go,
// NodeInfo.update), and NodeResourcesFit then fails for all pods with an invalid score.
func restrain(pod *corev1.Pod) {
	switch pod.Spec.NodeName {
	case "", "siege-nowhere":
	case "siege-" + rogue:
		pod.Spec.Resources = nil
		for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for i := range containers {
				for _, name := range []corev1.ResourceName{"cpu", "memory"} {
					delete(containers[i].Resources.Requests, name)
					delete(containers[i].Resources.Limits, name)
				}
			}
		}
	default:
		pod.Spec.Resources, pod.Spec.InitContainers, pod.Spec.Containers = nil, nil, pod.Spec.Containers[:1]
		pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{
			Requests: amounts{"cpu": "1m", gpuMilli: "1"}.list(), Limits: amounts{gpuMilli: "1"}.list()}
	}
}

// spoil makes a part of a pod odd.
func (a *attacker) spoil(pod *corev1.Pod) {
	spoilers := []func(*corev1.Pod){
		a.spoilResources, a.spoilResources, a.addInitContainers, a.addSidecars, a.addPodLevelResources, a.addAnnotations,
		a.addGroup, a.addGroup, a.setPriority, a.setNode, a.setNode, a.addFinalizer, a.addLabels, a.gate, a.setTimes,
		a.swarm, a.addVolume, a.shareGPU, a.shareGPU,
	}
	pick(a.random, spoilers)(pod)
}

// oddList returns requests of some resources.
func (a *attacker) oddList() corev1.ResourceList {
	list := corev1.ResourceList{}
	for range 1 + a.random.IntN(3) {
		name := pick(a.random, []corev1.ResourceName{"cpu", "memory", "ephemeral-storage", gpuMilli, gpuCount,
			"hugepages-2Mi", "example.com/seats", "example.com/mine"})
		if quantity, err := resource.ParseQuantity(pick(a.random, odd())); err == nil {
			list[name] = quantity
		}
	}
	return list
}

func (a *attacker) spoilResources(pod *corev1.Pod) {
	list := a.oddList()
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: list, Limits: list}
	if a.random.IntN(3) == 0 {
		second := *pod.Spec.Containers[0].DeepCopy()
		second.Name = "second"
		pod.Spec.Containers = append(pod.Spec.Containers, second)
	}
}

func (a *attacker) shareGPU(pod *corev1.Pod) {
	share := pick(a.random, []string{"1", "300", "600", "999", "1000", "1001", "2000"})
	list := amounts{gpuMilli: share, "cpu": "1m"}.list()
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: list, Limits: list}
}

func (a *attacker) addInitContainers(pod *corev1.Pod) {
	for i := range 1 + a.random.IntN(30) {
		list := a.oddList()
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: fmt.Sprint("init-", i),
			Image: "i", Resources: corev1.ResourceRequirements{Requests: list, Limits: list}})
	}
}

func (a *attacker) addSidecars(pod *corev1.Pod) {
	always := corev1.ContainerRestartPolicyAlways
	for i := range 1 + a.random.IntN(5) {
		list := amounts{"cpu": pick(a.random, []string{"1m", "100m", "3"}), "memory": pick(a.random, []string{"1Mi",
			"3Gi", "6Ei"})}.list()
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: fmt.Sprint("sidecar-", i),
			Image: "i", RestartPolicy: &always, Resources: corev1.ResourceRequirements{Requests: list, Limits: list}})
	}
}

// addPodLevelResources has no effect in releases that do not have them.
func (a *attacker) addPodLevelResources(pod *corev1.Pod) {
	list := amounts{"cpu": pick(a.random, []string{"1m", "2", "100"}), "memory": pick(a.random, []string{"1Mi", "5Gi",
		"6Ei"})}.list()
	pod.Spec.Resources = &corev1.ResourceRequirements{Requests: list, Limits: list}
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
}

// swarm gives a pod very many containers or resources. It is rare: kube-scheduler writes the status
// of a pod that it rejects before it tries the next pod, and an API server takes seconds for that.
func (a *attacker) swarm(pod *corev1.Pod) {
	if a.random.IntN(8) > 0 {
		return
	}
	size := pick(a.random, []struct{ containers, each int }{{1000, 0}, {1000, 1}, {50, 60}})
	for i := range size.containers {
		list := corev1.ResourceList{"cpu": resource.MustParse("1m"), "memory": resource.MustParse("1Mi")}
		for j := range size.each {
			list[corev1.ResourceName(fmt.Sprint("example.com/r-", i, "-", j))] = resource.MustParse("1")
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: fmt.Sprint("c-", i), Image: "i",
			Resources: corev1.ResourceRequirements{Requests: list, Limits: list}})
	}
}

// addAnnotations writes the annotations of plugins, and as much as an object may have (256 KiB).
func (a *attacker) addAnnotations(pod *corev1.Pod) {
	pod.Annotations = map[string]string{
		scheduler.AnnotationActivated: pick(a.random, []string{"", "never", "9999-12-31T23:59:59Z"}),
		gpuIndex:                      a.oddDevices(),
	}
	if a.random.IntN(20) == 0 {
		pod.Annotations["large"] = strings.Repeat("x", pick(a.random, []int{200 << 10, 1 << 20}))
	}
}

func (a *attacker) oddDevices() string {
	return pick(a.random, []string{"0", "0,0", "1,2", "-1", "4", "99999999999999999999", "NaN", ",", "0x1", strings.Repeat(
		"0,", 50_000)})
}

// addGroup puts a pod into a group, with a size that may be absurd. Groups of other tenants have
// the same names.
func (a *attacker) addGroup(pod *corev1.Pod) {
	pod.Labels[groupLabel] = pick(a.random, []string{fmt.Sprint("g-", a.random.IntN(1000)),
		fmt.Sprint("u-", 10*a.random.IntN(100)), "same"})
	pod.Labels[memberLabel] = pick(a.random, []string{"1", "2", "3", "1000000", "2147483647", "9223372036854775807",
		"9223372036854775808", "-1", "0", "NaN", "1e9", ""})
	if a.random.IntN(4) == 0 {
		pod.Labels["jobset.sigs.k8s.io/jobset-uid"] = "u"
	}
}

func (a *attacker) setPriority(pod *corev1.Pod) {
	pod.Spec.PriorityClassName = pick(a.random, []string{"siege-low", "siege-low", "siege-none"})
	if never := corev1.PreemptNever; a.random.IntN(2) == 0 {
		pod.Spec.PreemptionPolicy = &never
	}
}

// setNode selects a node, or bypasses the scheduler.
func (a *attacker) setNode(pod *corev1.Pod) {
	node := "siege-" + pick(a.random, []string{"0", "1", "2", "3", rogue, "nowhere"})
	if a.random.IntN(2) == 0 {
		pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
		return
	}
	pod.Labels[bypass], pod.Spec.NodeName = "true", node
}

func (a *attacker) addFinalizer(pod *corev1.Pod) {
	pod.Finalizers = []string{"example.com/" + pick(a.random, []string{"a", "b"})}
}

func (a *attacker) addLabels(pod *corev1.Pod) {
	pod.Labels[pick(a.random, []string{"pmk-sched.io/preemptible", unitLabel, "panic"})] = pick(a.random,
		[]string{"false", "true", "u-1", "u-10"})
}

func (a *attacker) gate(pod *corev1.Pod) {
	pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/gate"}}
}

func (a *attacker) setTimes(pod *corev1.Pod) {
	seconds := pick(a.random, []int64{0, 1, 1e6, 1 << 40})
	pod.Spec.TerminationGracePeriodSeconds = &seconds
}

func (a *attacker) addVolume(pod *corev1.Pod) {
	pod.Spec.Volumes = []corev1.Volume{{Name: "none", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "none"}}}}
}

// podPatch changes labels and annotations of a pod that exists.
func (a *attacker) podPatch() []byte {
	labels, annotations := map[string]any{}, map[string]any{}
	switch a.random.IntN(5) {
	case 0:
		labels[groupLabel] = pick(a.random, []any{nil, "same", "g-1"})
	case 1:
		labels[memberLabel] = pick(a.random, []any{nil, "2", "1000000", "x"})
	case 2:
		annotations[gpuIndex] = a.oddDevices()
		labels[tampered] = "true"
	case 3:
		annotations[scheduler.AnnotationActivated] = pick(a.random, []any{nil, fmt.Sprint(a.n)})
	case 4:
		labels["pmk-sched.io/preemptible"] = pick(a.random, []any{nil, "false"})
	}
	metadata := map[string]any{"labels": labels, "annotations": annotations}
	if a.random.IntN(6) == 0 {
		metadata["finalizers"] = pick(a.random, []any{nil, []string{"example.com/a"}})
	}
	text, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		panic(err) // strings are always encoded
	}
	return text
}
