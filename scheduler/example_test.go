package scheduler_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

// FewPods rejects nodes with many pods and prefers nodes with few. As a file of its own, with a
// function New that decodes MaxPods from the plugin's arguments, it is a complete plugin.
type FewPods struct{ MaxPods int }

// Name returns the plugin's name in the scheduler's configuration.
func (p *FewPods) Name() string { return "FewPods" }

// Filter rejects a node that has MaxPods pods.
func (p *FewPods) Filter(_ context.Context, _ scheduler.State, _ *corev1.Pod,
	node scheduler.NodeInfo) *scheduler.Status {
	if node.PodCount() >= p.MaxPods {
		return scheduler.Unschedulable("node has too many pods")
	}
	return nil
}

// Score returns a lower score for each pod on the node.
func (p *FewPods) Score(_ context.Context, _ scheduler.State, _ *corev1.Pod,
	node scheduler.NodeInfo) (int64, *scheduler.Status) {
	return scheduler.MaxNodeScore - int64(node.PodCount()), nil
}

// A plugin is called for a pod and three nodes, as a scheduler calls it.
func ExamplePlugin() {
	cluster := &plugintest.Cluster{}
	for name, pods := range map[string]int{"full": 2, "busy": 1, "idle": 0} {
		node := plugintest.NewNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		cluster.Add(node)
		for i := range pods {
			cluster.Place(plugintest.NewPod("default", fmt.Sprintf("%s-%d", name, i), nil), name)
		}
	}
	pod := plugintest.NewPod("default", "new", plugintest.Requests("1", "1Gi"))
	cycle := cluster.Schedule(context.Background(), &FewPods{MaxPods: 2}, pod)
	for name, status := range cycle.Rejected {
		fmt.Println("rejected:", name, status.Reasons())
	}
	fmt.Println("chosen:", cycle.Node)
	// Output:
	// rejected: full [node has too many pods]
	// chosen: idle
}

// Arguments are decoded strictly: a misspelled field is an error, and absent fields keep their
// defaults.
func ExampleArguments_Decode() {
	type arguments struct {
		MaxPods int    `json:"maxPods"`
		Label   string `json:"label"`
	}
	a := arguments{MaxPods: 10, Label: "example.com/pool"}
	fmt.Println(scheduler.NewArguments([]byte(`{"maxPods": 30}`)).Decode(&a), a)
	fmt.Println(scheduler.NewArguments([]byte(`{"maxpod": 30}`)).Decode(&a))
	// Output:
	// <nil> {30 example.com/pool}
	// read the plugin's arguments: unknown field "maxpod"
}
