package scheduler_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

func TestRequestsCountInitContainersAndOverhead(t *testing.T) {
	pod := plugintest.NewPod("shop", "a", plugintest.Requests("500m", "1Gi"))
	pod.Spec.Containers = append(pod.Spec.Containers,
		corev1.Container{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"example.com/gpu": resource.MustParse("2")}}})
	pod.Spec.InitContainers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: plugintest.Requests("2",
		"1Mi")}}}
	pod.Spec.Overhead = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
	want := scheduler.Amounts{"cpu": 2000, "memory": 2 << 30, "example.com/gpu": 2, "pods": 1}
	if diff := cmp.Diff(want, scheduler.PodRequests(pod)); diff != "" {
		t.Error(diff)
	}
	delete(want, corev1.ResourcePods)
	want["example.com/nic"] = 0
	for name, amount := range want {
		if got := scheduler.PodRequest(pod, name); got != amount {
			t.Errorf("%s: got %d, want %d", name, got, amount)
		}
	}
}

func TestAmountsAreAddedAndCompared(t *testing.T) {
	have := scheduler.Amounts{"cpu": 3, "memory": 5}
	sum := have.Clone()
	sum.Add(scheduler.Amounts{"cpu": 1, "gpu": 2}, -1)
	if diff := cmp.Diff(scheduler.Amounts{"cpu": 2, "memory": 5, "gpu": -2}, sum); diff != "" {
		t.Error(diff)
	}
	for _, c := range []struct {
		need, missing scheduler.Amounts
		first         corev1.ResourceName
	}{
		{nil, scheduler.Amounts{}, ""},
		{scheduler.Amounts{"cpu": 3, "gpu": 0}, scheduler.Amounts{}, ""},
		{scheduler.Amounts{"memory": 6, "cpu": 5, "gpu": 1}, scheduler.Amounts{"cpu": 2, "gpu": 1, "memory": 1}, "cpu"},
	} {
		got := have.Missing(c.need)
		if diff := cmp.Diff(c.missing, got); diff != "" || got.First() != c.first {
			t.Errorf("%v: first %q, %s", c.need, got.First(), diff)
		}
	}
	if have["cpu"] != 3 {
		t.Error("the clone shares its amounts")
	}
}

func TestAmountsHaveNamesAndUnits(t *testing.T) {
	r := scheduler.Resources{MilliCPU: 1, Memory: 2, EphemeralStorage: 3, Pods: 4,
		Scalar: map[corev1.ResourceName]int64{"hugepages-2Mi": 5}}
	for name, want := range map[corev1.ResourceName]struct {
		amount int64
		text   string // of 1536
	}{
		"cpu": {1, "1536m"}, "memory": {2, "1536"}, "ephemeral-storage": {3, "1536"}, "pods": {4,
			"1536"}, "hugepages-2Mi": {5, "1536"}, "example.com/gpu": {0, "1536"},
	} {
		if got, text := r.Amount(name), scheduler.FormatAmount(name, 1536); got != want.amount || text != want.text {
			t.Errorf("%s: %d and %s", name, got, text)
		}
	}
	for name, want := range map[corev1.ResourceName]string{"memory": "2Gi", "hugepages-2Mi": "2Gi",
		"example.com/gpu": "2147483648"} {
		if got := scheduler.FormatAmount(name, 2<<30); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
