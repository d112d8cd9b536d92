package report_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
)

// on returns a pod on a node, of a controller.
func on(p *corev1.Pod, node, name, ownerKind, owner string) *corev1.Pod {
	p.Namespace, p.Name, p.Spec.NodeName = "shop", name, node
	if owner != "" {
		yes := true
		p.OwnerReferences = []metav1.OwnerReference{{Kind: ownerKind, Name: owner, Controller: &yes}}
	}
	return p
}

func TestDistribution(t *testing.T) {
	var u report.Usage
	for i, zone := range []string{"a", "a", "b", ""} {
		n := named(node("cpu", "4", "memory", "8Gi", "pods", "10"), i)
		n.Labels = map[string]string{"topology.kubernetes.io/zone": zone}
		n.Spec.Unschedulable = i == 3
		u.AddNode(n)
	}
	u.AddPod(on(pod("cpu", "3900m", "memory", "2Gi"), "0", "web-1", "ReplicaSet", "web")) // strands 6Gi
	u.AddPod(on(pod("cpu", "2", "memory", "2Gi"), "1", "web-2", "ReplicaSet", "web"))
	u.AddPod(on(pod("cpu", "1"), "1", "db-0", "StatefulSet", "db"))
	u.AddPod(on(pod("cpu", "0"), "2", "db-1", "StatefulSet", "db"))
	u.AddPod(on(pod("cpu", "100m"), "3", "agent", "DaemonSet", "agent"))
	got := report.Distribute(&u, []string{"cpu", "memory"})
	// CPU: 0.975, 0.75, 0, 0.025. Memory: 0.25, 0.25, 0, 0.
	want := &report.Distribution{
		Resources: []report.Balance{
			{Resource: "cpu", Mean: 0.4375, CoefficientOfVariation: math.Sqrt(0.3784375-0.4375*0.4375) / 0.4375,
				Jain: 1.75 * 1.75 / (4 * 1.51375), LargestFree: "4", Stranded: "0"},
			{Resource: "memory", Mean: 0.125, CoefficientOfVariation: 1, Jain: 0.5, LargestFree: "8Gi", Stranded: "6Gi",
				StrandedPart: 6.0 / 32},
		},
		EmptyNodes: []string{"3"},
		Zones:      []report.Zone{{Name: "a", Nodes: 2, Pods: 3, CPU: 6.9 / 8}, {Name: "b", Nodes: 1, Pods: 1}},
		Workloads:  2, OneZone: 1,
	}
	close := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
	if diff := cmp.Diff(want, got, close); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDistributionOfNothing(t *testing.T) {
	var u report.Usage
	u.AddNode(named(node("cpu", "4", "pods", "10"), 1))
	u.AddPod(on(pod("cpu", "1"), "gone", "p", "", ""))
	got := report.Distribute(&u, []string{"cpu"})
	want := report.Balance{Resource: "cpu", Jain: 1, LargestFree: "4", Stranded: "0"}
	if diff := cmp.Diff(want, got.Resources[0]); diff != "" || len(got.EmptyNodes) != 1 {
		t.Errorf("empty nodes %v, (-want +got):\n%s", got.EmptyNodes, diff)
	}
}
