package scheduler_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

// requesting returns a container that requests CPU and memory.
func requesting(name, cpu, memory string) corev1.Container {
	return corev1.Container{
		Name: name, Resources: corev1.ResourceRequirements{Requests: plugintest.Requests(cpu, memory)}}
}

func sidecar(name, cpu, memory string) corev1.Container {
	c, always := requesting(name, cpu, memory), corev1.ContainerRestartPolicyAlways
	c.RestartPolicy = &always
	return c
}

// status is the status of a container whose resize the kubelet has accepted and not carried out.
func status(name, cpu, allocatedCPU string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, AllocatedResources: plugintest.Requests(allocatedCPU, "1Gi"),
		Resources: &corev1.ResourceRequirements{Requests: plugintest.Requests(cpu, "1Gi")}}
}

// claimed is the status of a pod with claims that use resources of its node.
func claimed(claims ...corev1.ResourceList) (status corev1.PodStatus) {
	for _, resources := range claims {
		status.NodeAllocatableResourceClaimStatuses = append(status.NodeAllocatableResourceClaimStatuses,
			corev1.NodeAllocatableResourceClaimStatus{Resources: resources})
	}
	return status
}

func TestRequestsAreThoseOfNodeResourcesFit(t *testing.T) {
	main := []corev1.Container{requesting("main", "1", "1Gi")}
	whole := func(cpu, memory string) *corev1.ResourceRequirements {
		return &corev1.ResourceRequirements{Requests: plugintest.Requests(cpu, memory)}
	}
	for name, c := range map[string]struct {
		spec   corev1.PodSpec
		status corev1.PodStatus
		cpu    int64
		memory int64
	}{
		"pod-level requests without requests of containers": {
			spec: corev1.PodSpec{Resources: whole("100", "1Gi"), Containers: []corev1.Container{{Name: "main"}}},
			cpu:  100_000, memory: 1 << 30},
		"pod-level requests replace those of containers": {
			spec: corev1.PodSpec{Resources: whole("3", "4Gi"), Containers: main,
				InitContainers: []corev1.Container{requesting("init", "9", "9Gi")},
				Overhead:       plugintest.Requests("500m", "1Gi")},
			cpu: 3500, memory: 5 << 30},
		"two sidecars": {
			spec: corev1.PodSpec{Containers: main,
				InitContainers: []corev1.Container{sidecar("a", "2", "1Gi"), sidecar("b", "2", "1Gi")}},
			cpu: 5000, memory: 3 << 30},
		"a sidecar before an init container": {
			spec: corev1.PodSpec{Containers: main,
				InitContainers: []corev1.Container{sidecar("a", "2", "1Gi"), requesting("init", "4", "1Gi")}},
			cpu: 6000, memory: 2 << 30},
		"a sidecar after an init container": {
			spec: corev1.PodSpec{Containers: main,
				InitContainers: []corev1.Container{requesting("init", "4", "1Gi"), sidecar("a", "2", "1Gi")}},
			cpu: 4000, memory: 2 << 30},
		"overhead": {
			spec: corev1.PodSpec{Containers: main, Overhead: plugintest.Requests("1", "1Gi")}, cpu: 2000, memory: 2 << 30},
		"two containers beyond an int64": {
			spec: corev1.PodSpec{Containers: []corev1.Container{requesting("a", "6Ei", "6Ei"), requesting("b", "6Ei", "6Ei")}},
			cpu:  math.MaxInt64, memory: math.MaxInt64},
		"a sum that would begin again at 4Ei": {
			spec: corev1.PodSpec{Containers: []corev1.Container{requesting("a", "0", "7Ei"), requesting("b", "0", "7Ei"),
				requesting("c", "0", "6Ei")}},
			memory: math.MaxInt64},
		"an init container, a sidecar and the overhead beyond an int64": {
			spec: corev1.PodSpec{Containers: main, Overhead: plugintest.Requests("1", "3Ei"),
				InitContainers: []corev1.Container{sidecar("a", "1", "3Ei"), requesting("init", "1", "3Ei")}},
			cpu: 3000, memory: math.MaxInt64},
		"exponents that are too large to compute with": {
			spec: corev1.PodSpec{Containers: []corev1.Container{requesting("a", "1e2000000000", "1e400"), main[0]}},
			cpu:  math.MaxInt64, memory: math.MaxInt64},
		"fractions of a byte are rounded up once": {
			spec: corev1.PodSpec{Containers: []corev1.Container{requesting("a", "1500m", "100m"), requesting("b", "0",
				"200m")}},
			cpu: 1500, memory: 1},
		"a container that is being made larger": {
			spec:   corev1.PodSpec{Containers: main},
			status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{status("main", "3", "2")}},
			cpu:    3000, memory: 1 << 30},
		"a resize that is infeasible": {
			spec: corev1.PodSpec{Containers: []corev1.Container{requesting("main", "8", "1Gi")}},
			status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{status("main", "1", "2")},
				Conditions: []corev1.PodCondition{{Type: corev1.PodResizePending, Reason: corev1.PodReasonInfeasible}}},
			cpu: 2000, memory: 1 << 30},
		"resources of claims": {
			spec:   corev1.PodSpec{Containers: main, InitContainers: []corev1.Container{requesting("init", "4", "1Gi")}},
			status: claimed(plugintest.Requests("2", "1Gi"), plugintest.Requests("1", "1Gi")),
			cpu:    7000, memory: 3 << 30},
		"pod-level requests include the resources of claims": {
			spec:   corev1.PodSpec{Resources: whole("3", "4Gi"), Containers: main},
			status: claimed(plugintest.Requests("2", "1Gi")),
			cpu:    3000, memory: 4 << 30},
		"pod-level requests that are being reduced": {
			spec: corev1.PodSpec{Resources: whole("1", "1Gi"), Containers: main},
			status: corev1.PodStatus{Resources: whole("3", "1Gi"),
				AllocatedResources: plugintest.Requests("2", "1Gi")},
			cpu: 3000, memory: 1 << 30},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: c.spec, Status: c.status}
			want := scheduler.Amounts{corev1.ResourceMemory: c.memory, corev1.ResourcePods: 1}
			if c.cpu > 0 {
				want[corev1.ResourceCPU] = c.cpu
			}
			if diff := cmp.Diff(want, scheduler.PodRequests(pod)); diff != "" {
				t.Error(diff)
			}
			if again := scheduler.PodRequest(pod, corev1.ResourceMemory); again != c.memory {
				t.Errorf("memory again: %d", again)
			}
		})
	}
}

func TestRequestOfOneResourceDoesNotAllocate(t *testing.T) {
	pod := plugintest.NewPod("shop", "a", plugintest.Requests("500m", "1Gi"))
	pod.Spec.InitContainers = []corev1.Container{sidecar("a", "2", "1Gi"), requesting("init", "4", "1Gi")}
	pod.Spec.Overhead = plugintest.Requests("1", "1Gi")
	if n := testing.AllocsPerRun(100, func() { scheduler.PodRequest(pod, corev1.ResourceMemory) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestSumsSaturate(t *testing.T) {
	const most = math.MaxInt64
	for _, c := range []struct{ a, b, want int64 }{
		{1, 2, 3}, {most, 1, most}, {most, most, most}, {-most, -1, -most}, {-most, most, 0}, {most, -1, most - 1},
	} {
		if got := scheduler.Sum(c.a, c.b); got != c.want {
			t.Errorf("%d + %d: got %d, want %d", c.a, c.b, got, c.want)
		}
	}
	sum := scheduler.Amounts{"memory": most}
	sum.Add(scheduler.Amounts{"memory": most}, 1)
	if !sum.Saturated() || sum["memory"] != most {
		t.Errorf("got %v", sum)
	}
	// The API server refuses it. An extender may be sent one nevertheless.
	negative := plugintest.NewPod("shop", "a", plugintest.Requests("1", "-1e2000000000"))
	negative.Spec.Overhead = plugintest.Requests("1", "1")
	if got := scheduler.PodRequest(negative, corev1.ResourceMemory); got != 1 {
		t.Errorf("a negative request: got %d", got)
	}
	for text, want := range map[string]int64{"1e400": most, "-1e400": -most, "0e2000000000": 0, "8Ei": most} {
		quantity := resource.MustParse(text)
		for name, amount := range scheduler.NewAmounts(corev1.ResourceList{"cpu": quantity, "memory": quantity}) {
			if amount != want {
				t.Errorf("%s of %s: got %d, want %d", text, name, amount, want)
			}
		}
	}
}
