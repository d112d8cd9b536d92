package report_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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

func approximately() cmp.Option {
	return cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
}

// A node lacks a resource of which less than 5 % is free: what is free of the others is stranded.
func TestRoomThatIsStranded(t *testing.T) {
	for name, tc := range map[string]struct {
		node, pod     []string
		unschedulable bool
		pods          int
		want          report.Balance
	}{
		"5 % of CPU are free": {[]string{"cpu", "20", "memory", "8Gi", "pods", "10"}, []string{"cpu", "19", "memory", "2Gi"}, false, 1,
			report.Balance{Mean: 0.25, LargestFree: "6Gi", Stranded: "0"}},
		"less of CPU": {[]string{"cpu", "20", "memory", "8Gi", "pods", "10"}, []string{"cpu", "19001m", "memory", "2Gi"}, false, 1,
			report.Balance{Mean: 0.25, LargestFree: "0", Stranded: "6Gi", StrandedPart: 0.75}},
		"all of CPU, and more": {[]string{"cpu", "20", "memory", "8Gi", "pods", "10"}, []string{"cpu", "21", "memory", "9Gi"}, false, 1,
			report.Balance{Mean: 1.125, LargestFree: "0", Stranded: "0"}},
		"no CPU at all": {[]string{"memory", "8Gi", "pods", "10"}, []string{"memory", "2Gi"}, false, 1,
			report.Balance{Mean: 0.25, LargestFree: "6Gi", Stranded: "0"}},
		"less of memory itself": {[]string{"cpu", "20", "memory", "100Gi", "pods", "10"}, []string{"memory", "96Gi"}, false, 1,
			report.Balance{Mean: 0.96, LargestFree: "4Gi", Stranded: "0"}},
		"no pod more": {[]string{"cpu", "20", "memory", "8Gi", "pods", "1"}, []string{"memory", "2Gi"}, false, 1,
			report.Balance{Mean: 0.25, LargestFree: "0", Stranded: "6Gi", StrandedPart: 0.75}},
		"no pods at all": {[]string{"cpu", "20", "memory", "8Gi"}, []string{"memory", "2Gi"}, false, 1,
			report.Balance{Mean: 0.25, LargestFree: "0", Stranded: "0"}},
		"cordoned": {[]string{"cpu", "20", "memory", "8Gi", "pods", "10"}, []string{"memory", "2Gi"}, true, 1,
			report.Balance{Mean: 0.25, LargestFree: "0", Stranded: "0"}},
	} {
		var u report.Usage
		n := named(node(tc.node...), 1)
		n.Spec.Unschedulable = tc.unschedulable
		u.AddNode(n)
		u.AddPod(on(pod(tc.pod...), "1", "p", "", ""))
		tc.want.Resource, tc.want.Jain = "memory", 1
		got := report.Distribute(&u, []string{"memory"}).Resources
		if diff := cmp.Diff([]report.Balance{tc.want}, got, approximately()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Pods that cannot move and pods without a controller are no workloads. Nodes without a zone count
// for none.
func TestWorkloadsInZones(t *testing.T) {
	var u report.Usage
	for i, zone := range []string{"", "c", "b", "a", "b"} {
		n := named(node("memory", "8Gi"), i)
		n.Labels = map[string]string{corev1.LabelTopologyZone: zone}
		if i == 1 {
			n.Labels = map[string]string{corev1.LabelFailureDomainBetaZone: zone}
		}
		if i == 3 {
			n.Status.Allocatable["cpu"] = resource.MustParse("4")
		}
		u.AddNode(n)
	}
	for _, p := range [][4]string{ // node, name, kind and name of the owner
		{"1", "agent-1", "DaemonSet", "agent"}, {"2", "agent-2", "DaemonSet", "agent"},
		{"1", "alone-1", "", ""}, {"2", "alone-2", "", ""},
		{"2", "one-1", "Job", "one"}, {"4", "one-2", "Job", "one"},
		{"2", "two-1", "Job", "two"}, {"3", "two-2", "Job", "two"},
		{"0", "none-1", "Job", "none"}, {"0", "none-2", "Job", "none"}, {"1", "single", "Job", "single"},
	} {
		u.AddPod(on(pod("cpu", "1"), p[0], p[1], p[2], p[3]))
	}
	other := on(pod("cpu", "1"), "4", "two-1", "Job", "two")
	other.Namespace = "other"
	u.AddPod(other)
	got := report.Distribute(&u, nil)
	want := &report.Distribution{
		Resources: []report.Balance{}, EmptyNodes: []string{}, Workloads: 2, OneZone: 1,
		Zones: []report.Zone{{Name: "a", Nodes: 1, Pods: 1, CPU: 0.25}, {Name: "b", Nodes: 2, Pods: 6},
			{Name: "c", Nodes: 1, Pods: 3}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Figures before belong to those of the same name after; what is new has none before.
func TestFiguresBeforeAndAfter(t *testing.T) {
	s := &report.Summary{
		Before: &report.Distribution{Resources: []report.Balance{{Resource: "cpu", Mean: 1}, {Resource: "gone", Mean: 2},
			{Resource: "memory", Mean: 3}},
			Zones: []report.Zone{{Name: "a", Pods: 1}, {Name: "gone", Pods: 2}, {Name: "b", Pods: 3}}},
		After: &report.Distribution{Resources: []report.Balance{{Resource: "memory", Mean: 4}, {Resource: "cpu", Mean: 5},
			{Resource: "new", Mean: 6}},
			Zones: []report.Zone{{Name: "b", Pods: 4}, {Name: "a", Pods: 5}, {Name: "new", Pods: 6}}},
	}
	balances := []report.BalanceChange{
		{Resource: "memory", Before: s.Before.Resources[2], After: s.After.Resources[0]},
		{Resource: "cpu", Before: s.Before.Resources[0], After: s.After.Resources[1]},
		{Resource: "new", After: s.After.Resources[2]},
	}
	if diff := cmp.Diff(balances, s.Balances()); diff != "" {
		t.Errorf("balances (-want +got):\n%s", diff)
	}
	zones := []report.ZoneChange{{Name: "b", Before: s.Before.Zones[2], After: s.After.Zones[0]},
		{Name: "a", Before: s.Before.Zones[0], After: s.After.Zones[1]}, {Name: "new", After: s.After.Zones[2]}}
	if diff := cmp.Diff(zones, s.Zones()); diff != "" {
		t.Errorf("zones (-want +got):\n%s", diff)
	}
	for _, s := range []*report.Summary{{}, {Before: s.Before}, {After: s.After}} {
		if s.Balances() != nil || s.Zones() != nil {
			t.Errorf("one side alone: %v, %v", s.Balances(), s.Zones())
		}
	}
}
