package report_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
)

func amounts(list ...string) corev1.ResourceList {
	all := corev1.ResourceList{}
	for i := 0; i < len(list); i += 2 {
		all[corev1.ResourceName(list[i])] = resource.MustParse(list[i+1])
	}
	return all
}

func node(list ...string) *corev1.Node {
	return &corev1.Node{Status: corev1.NodeStatus{Allocatable: amounts(list...)}}
}

func pod(list ...string) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: amounts(list...)}}}}}
}

func TestUtilization(t *testing.T) {
	var before, after report.Usage
	for _, u := range []*report.Usage{&before, &after} {
		u.AddNode(node("cpu", "4", "memory", "8Gi", "pods", "10", "example.com/gpu", "2", "hugepages-2Mi", "0"))
		u.AddNode(node("cpu", "4", "memory", "8Gi", "pods", "10"))
		u.AddPod(pod("cpu", "1", "memory", "4Gi"))
	}
	after.AddPod(pod("cpu", "500m", "example.com/gpu", "1"))
	sidecar := pod("cpu", "500m") // the init container needs more than the container
	sidecar.Spec.InitContainers = pod("cpu", "1500m").Spec.Containers
	after.AddPod(sidecar)
	want := []report.Utilization{
		{Resource: "cpu", Allocatable: "8", Before: 1.0 / 8, After: 3.0 / 8},
		{Resource: "memory", Allocatable: "16Gi", Before: 0.25, After: 0.25},
		{Resource: "pods", Allocatable: "20", Before: 0.05, After: 0.15},
		{Resource: "example.com/gpu", Allocatable: "2", Before: 0, After: 0.5},
	}
	close := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
	if diff := cmp.Diff(want, report.Compare(&before, &after), close); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if before.Nodes != 2 || after.Pods != 3 {
		t.Errorf("%d nodes, %d pods", before.Nodes, after.Pods)
	}
}

// A pod of a node that is gone stays in every dump for minutes. A scheduler counts in 64 bits.
func TestRequestsAreCountedAsASchedulerCountsThem(t *testing.T) {
	place := func(name, on string, requests ...string) *corev1.Pod {
		p := pod(requests...)
		p.Namespace, p.Name, p.Spec.NodeName = "default", name, on
		return p
	}
	n1, n2 := node("cpu", "4", "memory", "8Gi", "pods", "110"), node("cpu", "4", "memory", "8Gi", "pods", "110")
	n1.Name, n2.Name = "n1", "n2"
	var before, after report.Usage
	before.AddPod(place("ghost", "gone", "cpu", "8"))
	after.AddPod(place("ghost", "gone", "cpu", "8"))
	after.AddPod(place("new", "n1", "cpu", "4"))
	after.AddPod(place("huge", "n2", "memory", "50E"))
	after.AddPending(place("millis", "", "memory", "256m"))
	after.AddPending(place("more", "", "memory", "128m"))
	for _, u := range []*report.Usage{&before, &after} {
		u.AddNode(n1)
		u.AddNode(n2)
	}
	var r report.Report
	r.Measure(&before, &after)
	want := []report.Utilization{
		{Resource: "cpu", Allocatable: "8", After: 0.5}, {Resource: "memory", Allocatable: "16Gi"},
		{Resource: "pods", Allocatable: "220", After: 2.0 / 220},
	}
	if diff := cmp.Diff(want, r.Summary.Utilization); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if free := r.Summary.After.Resources[1].LargestFree; free != "8Gi" {
		t.Errorf("the largest pod requests %s of memory, want 8Gi", free)
	}
	notes := []string{
		"pod default/millis requests 256m of memory (and 1 more): less than 1 KiB, the unit m means thousandths",
		"pod default/huge requests 50E of memory: more than 2^63-1, schedulers count it as less",
	}
	if diff := cmp.Diff(notes, r.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

func TestFinishOrdersAndCounts(t *testing.T) {
	r := report.Report{
		Placements: []report.Placement{{Namespace: "b", Name: "x"}, {Namespace: "a", Name: "z", From: "m", Node: "n"},
			{Namespace: "a", Name: "y", From: "n", Node: "n"}},
		Unplaced: []report.Unplaced{{Namespace: "b", Name: "x"}, {Namespace: "a", Name: "y"}},
		Evicted:  []report.Placement{{Namespace: "c", Name: "b"}, {Namespace: "c", Name: "a"}},
	}
	r.Finish()
	want := report.Report{
		Placements: []report.Placement{{Namespace: "a", Name: "y", From: "n", Node: "n"},
			{Namespace: "a", Name: "z", From: "m", Node: "n"}, {Namespace: "b", Name: "x"}},
		Unplaced: []report.Unplaced{{Namespace: "a", Name: "y"}, {Namespace: "b", Name: "x"}},
		Evicted:  []report.Placement{{Namespace: "c", Name: "a"}, {Namespace: "c", Name: "b"}},
		Summary:  report.Summary{Scheduled: 5, Placed: 3, Moved: 1, Unplaced: 2, Evicted: 2},
	}
	if diff := cmp.Diff(want, r, cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(report.Report{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnEmptyReportHasListsInJSON(t *testing.T) {
	var r report.Report
	r.Finish()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var lists struct {
		Placements, Unplaced, Evicted []any
		Summary                       struct{ Utilization []any }
	}
	if err := json.Unmarshal(text, &lists); err != nil {
		t.Fatal(err)
	}
	if lists.Placements == nil || lists.Unplaced == nil || lists.Evicted == nil || lists.Summary.Utilization == nil {
		t.Errorf("a list is null: %s", text)
	}
}
