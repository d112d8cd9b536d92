package gpupacking

import (
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

func TestOnlyChangesOfGPUsRetryAPod(t *testing.T) {
	g := newPlugin(t, &plugintest.Handle{},
		`{"resource": "example.com/gpu-mem", "devices": {"countResource": "example.com/gpu-count"}, "annotations": {"index": "example.com/gpu-index"}}`)
	node := func(memory, count, cpu string) *corev1.Node {
		n := &corev1.Node{}
		n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		if memory != "" {
			n.Status.Allocatable["example.com/gpu-mem"] = resource.MustParse(memory)
			n.Status.Allocatable["example.com/gpu-count"] = resource.MustParse(count)
		}
		return n
	}
	plain := plugintest.NewPod("shop", "plain", nil)
	sharing := plugintest.NewPod("shop", "sharing", corev1.ResourceList{"example.com/gpu-mem": resource.MustParse("4")})
	const added, deleted, changed = scheduler.ActionAdd, scheduler.ActionDelete, scheduler.ActionUpdateNodeAllocatable
	for name, c := range map[string]struct {
		of            scheduler.EventResource
		action        scheduler.ActionType
		before, after interface{}
		want          bool
	}{
		"a deleted pod with GPUs":          {scheduler.EventPod, deleted, sharing, nil, true},
		"a deleted pod without":            {scheduler.EventPod, deleted, plain, nil, false},
		"something unknown was deleted":    {scheduler.EventPod, deleted, "?", nil, true},
		"a new node with GPUs":             {scheduler.EventNode, added, nil, node("16", "2", "4"), true},
		"a new node without":               {scheduler.EventNode, added, nil, node("", "", "4"), false},
		"a node has GPUs now":              {scheduler.EventNode, changed, node("", "", "4"), node("16", "2", "4"), true},
		"a node has more devices":          {scheduler.EventNode, changed, node("16", "2", "4"), node("16", "1", "4"), true},
		"a node has larger devices":        {scheduler.EventNode, changed, node("16", "2", "4"), node("32", "2", "4"), true},
		"a node has more CPU":              {scheduler.EventNode, changed, node("16", "2", "4"), node("16", "2", "8"), false},
		"a node has something unknown now": {scheduler.EventNode, changed, nil, nil, true},
	} {
		if got := plugintest.Retries(g, &corev1.Pod{}, c.of, c.action, c.before, c.after); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A change after which a pod fits that did not fit before always retries the pod.
func TestEveryChangeThatMakesRoomRetriesAPod(t *testing.T) {
	g := newPlugin(t, &plugintest.Handle{}, args)
	random := rand.New(rand.NewPCG(1, 2)) // #nosec G404
	amounts := []int64{0, 100, 300, 500, 700, 1000, 2000}
	fits := func(pod *corev1.Pod, node *plugintest.Node) bool {
		state := plugintest.NewState()
		g.PreFilter(t.Context(), state, pod)
		return g.Filter(t.Context(), state, pod, node).IsSuccess()
	}
	deletions, changes := 0, 0
	for i := range 20000 {
		pod := gpuPod("new", amounts[1+random.IntN(len(amounts)-1)], "")
		devices := random.Int64N(4)
		var pods []*corev1.Pod
		for j := range random.IntN(6) {
			pods = append(pods, gpuPod(fmt.Sprint("p", j), amounts[random.IntN(len(amounts))],
				[]string{"", "0", "1", "0,1"}[random.IntN(4)]))
		}
		before := gpuNode("n", devices, pods...)
		if fits(pod, before) {
			continue
		}
		if len(pods) > 0 {
			if fits(pod, gpuNode("n", devices, pods[1:]...)) {
				deletions++
				if !plugintest.Retries(g, pod, scheduler.EventPod, scheduler.ActionDelete, pods[0], nil) {
					t.Fatalf("%d: the deletion of %v does not retry the pod", i, pods[0].Spec.Containers[0].Resources)
				}
			}
		}
		if after := gpuNode("n", random.Int64N(4), pods...); fits(pod, after) {
			changes++
			if !plugintest.Retries(g, pod, scheduler.EventNode, scheduler.ActionUpdateNodeAllocatable, before.Node(),
				after.Node()) || !plugintest.Retries(g, pod, scheduler.EventNode, scheduler.ActionAdd, nil, after.Node()) {
				t.Fatalf("%d: a node with %v does not retry the pod", i, after.Node().Status.Allocatable)
			}
		}
	}
	if deletions < 100 || changes < 100 {
		t.Errorf("only %d deletions and %d changes made room", deletions, changes)
	}
}

func TestPreBindIsSkippedForPodsWithoutGPUs(t *testing.T) {
	g := newPlugin(t, &plugintest.Handle{}, args)
	for gpu, want := range map[int64]scheduler.Code{0: scheduler.CodeSkip, 300: scheduler.CodeSuccess} {
		if got := g.PreBindPreFlight(t.Context(), plugintest.NewState(), gpuPod("new", gpu, ""), "n").Code(); got != want {
			t.Errorf("%d: %s, want %s", gpu, got, want)
		}
	}
}
