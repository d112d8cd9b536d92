//go:build linux

package failover

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/artifact/kubeadm"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// fault is a failure of the node of a scheduler's leader.
type fault struct {
	// name is the name of the sub-benchmark, title that in the table.
	name, title string
	// inject returns as soon as the failure has an effect; repair may be called without it.
	inject func(b *testing.B, leader *labs.Node, s scheduler)
	repair func(b *testing.B, leader *labs.Node)
}

// etcdPort is the port on which a member of etcd serves clients.
const etcdPort = 2379

func faults() []fault {
	return []fault{
		{"process", "the leader's process is killed", killLeader, func(*testing.B, *labs.Node) {}},
		{"node", "its node is stopped",
			func(b *testing.B, leader *labs.Node, _ scheduler) {
				must(b, leader.Lab.StopNode(run.Context(b), leader.NodeName))
			},
			func(b *testing.B, leader *labs.Node) { must(b, leader.Lab.StartNode(run.Context(b), leader.NodeName)) }},
		{"network", "its network is cut",
			func(b *testing.B, leader *labs.Node, _ scheduler) {
				must(b, leader.Lab.CutNode(run.Context(b), leader.NodeName))
			},
			func(b *testing.B, leader *labs.Node) { must(b, leader.Lab.HealNode(run.Context(b), leader.NodeName)) }},
		{"apiserver", "the API server of its node is stopped", stop("kube-apiserver", kubeadm.Port), start("kube-apiserver")},
		{"etcd", "the etcd member of its node is stopped", stop("etcd", etcdPort), start("etcd")},
	}
}

// killLeader kills the leader's process. The kubelet starts it again.
func killLeader(b *testing.B, leader *labs.Node, s scheduler) {
	b.Helper()
	pods, err := leader.Direct(b).CoreV1().Pods(metav1.NamespaceSystem).List(run.Context(b), metav1.ListOptions{
		LabelSelector: s.pods, FieldSelector: "spec.nodeName=" + leader.NodeName,
	})
	if err == nil && len(pods.Items) != 1 {
		err = errors.New("the node of the leader has no replica, or several")
	}
	must(b, err)
	leader.KillContainer(b, pods.Items[0].Name, "kube-scheduler")
}

func stop(component string, port int) func(*testing.B, *labs.Node, scheduler) {
	return func(b *testing.B, leader *labs.Node, _ scheduler) { leader.StopStaticPod(b, component, port) }
}

func start(component string) func(*testing.B, *labs.Node) {
	return func(b *testing.B, leader *labs.Node) { leader.StartStaticPod(b, component) }
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
