package coscheduling

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

func TestNeedIsThatOfTheSmallestPods(t *testing.T) {
	pods := []*corev1.Pod{
		plugintest.NewPod("shop", "a", plugintest.Requests("3", "1Gi")), plugintest.NewPod("shop", "b",
			plugintest.Requests("1", "3Gi")),
		plugintest.NewPod("shop", "c", corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}),
	}
	want := amounts{corev1.ResourceCPU: 3000, corev1.ResourceMemory: 1 << 30, corev1.ResourcePods: 2}
	if diff := cmp.Diff(want, needOf(pods, 2)); diff != "" {
		t.Error(diff)
	}
}

func TestFreeRoomIsThatOfNodesThatAcceptPods(t *testing.T) {
	node := func(name, cpu string, cordoned bool, pods ...*corev1.Pod) scheduler.NodeInfo {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Unschedulable: cordoned}}
		n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu),
			corev1.ResourcePods: resource.MustParse("3"), "example.com/gpu": resource.MustParse("1")}
		return plugintest.NewNode(n, pods...)
	}
	low := plugintest.NewPod("shop", "low", plugintest.Requests("3", "1Gi"))
	nodes := []scheduler.NodeInfo{node("a", "4", false, low), node("b", "2", false), node("c", "8", true),
		node("d", "2", false, low)}
	need := amounts{corev1.ResourceCPU: 1, corev1.ResourcePods: 1, "example.com/nic": 1}
	// Node d has more requests than it can have: it has nothing, not less.
	if diff := cmp.Diff(amounts{corev1.ResourceCPU: 3000, corev1.ResourcePods: 7, "example.com/nic": 0},
		freeOf(nodes, need, nil)); diff != "" {
		t.Error(diff)
	}
	evicted := freeOf(nodes, need, func(*corev1.Pod) bool { return true })
	if diff := cmp.Diff(amounts{corev1.ResourceCPU: 8000, corev1.ResourcePods: 9, "example.com/nic": 0},
		evicted); diff != "" {
		t.Error(diff)
	}
}

func TestAmountsAreCompared(t *testing.T) {
	have := amounts{"cpu": 3, "memory": 5}
	for _, test := range []struct {
		other           amounts
		missing         corev1.ResourceName
		covers, exceeds bool
	}{
		{amounts{"cpu": 3}, "", true, true},
		{amounts{"cpu": 3, "memory": 5}, "", true, false},
		{amounts{"cpu": 4, "memory": 6}, "cpu", false, false},
		{amounts{"gpu": 1, "cpu": 9, "memory": 9}, "cpu", false, false},
		{nil, "", true, true},
	} {
		missing := have.Missing(test.other).First()
		covered, exceeded := covers(have, test.other), exceeds(have, test.other)
		if missing != test.missing || covered != test.covers || exceeded != test.exceeds {
			t.Errorf("%v: missing %q, covers %v, exceeds %v", test.other, missing, covered, exceeded)
		}
	}
}
