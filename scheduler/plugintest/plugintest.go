// Package plugintest runs a portable plugin in an ordinary Go test, without a cluster and without
// the scheduler.
//
//	func TestFullNodesAreRejected(t *testing.T) {
//		pod := plugintest.NewPod("default", "web", corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")})
//		node := plugintest.NewNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, pod)
//		handle := &plugintest.Handle{NodeList: []scheduler.NodeInfo{node}}
//		plugin, err := quiet.New(context.Background(), scheduler.NewArguments([]byte(`{"maxPods": 1}`)), handle)
//		if err != nil {
//			t.Fatal(err)
//		}
//		status := plugin.Filter(context.Background(), plugintest.NewState(), pod, node)
//		if status.Code() != scheduler.CodeUnschedulable {
//			t.Errorf("got %v", status)
//		}
//	}
//
// [Cluster] has many nodes and selects one of them with the plugin, and [Benchmark] measures how
// long that takes.
//
// It does not emulate an API server: for a plugin that uses one, set Handle.Config to a real API
// server.
package plugintest

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Node is a scheduler.NodeInfo.
type Node struct {
	node                   *corev1.Node
	pods                   []*corev1.Pod
	requested, allocatable scheduler.Resources
}

var _ scheduler.NodeInfo = &Node{}

// NewNode returns a node with pods on it. Its allocatable resources are the node's
// status.allocatable; the requested resources are the sum over the pods' containers.
func NewNode(node *corev1.Node, pods ...*corev1.Pod) *Node {
	n := &Node{
		node: node, requested: scheduler.NewResources(nil),
		allocatable: scheduler.NewResources(node.Status.Allocatable),
	}
	for _, p := range pods {
		n.add(p)
	}
	return n
}

func (n *Node) add(pod *corev1.Pod) {
	n.pods = append(n.pods, pod)
	n.requested = n.requested.Plus(scheduler.PodRequests(pod), 1)
}

// Node implements scheduler.NodeInfo.
func (n *Node) Node() *corev1.Node { return n.node }

// PodCount implements scheduler.NodeInfo.
func (n *Node) PodCount() int { return len(n.pods) }

// Pod implements scheduler.NodeInfo.
func (n *Node) Pod(i int) *corev1.Pod { return n.pods[i] }

// Requested implements scheduler.NodeInfo.
func (n *Node) Requested() scheduler.Resources { return n.requested }

// Allocatable implements scheduler.NodeInfo.
func (n *Node) Allocatable() scheduler.Resources { return n.allocatable }

// NewPod returns a pod with one container that has these requests.
func NewPod(namespace, name string, requests corev1.ResourceList) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name)},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main",
			Resources: corev1.ResourceRequirements{Requests: requests}}}},
	}
}

// Requests returns a request of CPU and memory, as in Requests("500m", "1Gi"). It panics if these
// are not quantities.
func Requests(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu),
		corev1.ResourceMemory: resource.MustParse(memory)}
}

// State is a scheduler.State.
type State = scheduler.MapState

// NewState returns the state of a new scheduling cycle.
func NewState() *State { return scheduler.NewMapState() }
