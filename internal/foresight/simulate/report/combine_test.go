package report_test

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
)

// named returns a node with the name of a number.
func named(n *corev1.Node, number int) *corev1.Node {
	n.Name = strconv.Itoa(number)
	return n
}

func TestStepsAreCombined(t *testing.T) {
	steps := []*report.Report{
		{
			Scenario: "drain",
			Placements: []report.Placement{{Namespace: "n", Name: "moved", Node: "b", From: "a"},
				{Namespace: "n", Name: "twice", Node: "b", From: "a"}},
			Unplaced: []report.Unplaced{{Namespace: "n", Name: "waits", From: "a", Reason: "full"}},
			Evicted:  []report.Placement{{Namespace: "n", Name: "low", Node: "b"}},
			Notes:    []string{"a note", "of both"},
			Summary:  report.Summary{Nodes: 2, Pods: 4, LoadSeconds: 1},
		},
		{
			Scenario: "pending", Release: "v1.24.3", Scheduler: "s",
			Placements: []report.Placement{{Namespace: "n", Name: "waits", Node: "c"},
				{Namespace: "n", Name: "twice", Node: "c", From: "b"}},
			Unplaced: []report.Unplaced{{Namespace: "n", Name: "new", Reason: "no room"}},
			Evicted:  []report.Placement{{Namespace: "n", Name: "moved", Node: "b"}},
			Capacity: &report.Capacity{Copies: 3},
			Notes:    []string{"of both"},
			Summary:  report.Summary{Nodes: 3, Pods: 2, LoadSeconds: 2},
		},
	}
	for i, cpus := range []string{"1", "3"} { // the second step has another node
		before, after := &report.Usage{}, &report.Usage{}
		for j := range i + 1 {
			before.AddNode(named(node("cpu", "4"), j))
		}
		after.AddNode(named(node("cpu", "4"), 0))
		after.AddNode(named(node("cpu", "4"), 1))
		placed := pod("cpu", cpus)
		placed.Spec.NodeName = "0"
		before.AddPod(placed)
		after.AddPod(placed)
		after.AddPod(placed)
		steps[i].Measure(before, after)
	}
	want := &report.Report{
		Scenario: "sequence", Release: "v1.24.3", Scheduler: "s", Steps: steps, Capacity: &report.Capacity{Copies: 3},
		Notes: []string{"step 1: a note", "of both"},
		Placements: []report.Placement{{Namespace: "n", Name: "twice", Node: "c", From: "a"},
			{Namespace: "n", Name: "waits", Node: "c", From: "a"}},
		Unplaced: []report.Unplaced{{Namespace: "n", Name: "moved", From: "a", Reason: report.Evicted},
			{Namespace: "n", Name: "new", Reason: "no room"}},
		Evicted: []report.Placement{{Namespace: "n", Name: "low", Node: "b"}},
		Summary: report.Summary{Nodes: 3, Pods: 4, Scheduled: 4, Placed: 2, Moved: 2, Unplaced: 2, Evicted: 1, LoadSeconds: 3,
			Utilization: []report.Utilization{
				{Resource: "cpu", Allocatable: "4", AllocatableAfter: "8", Before: 0.25, After: 0.75},
			}},
	}
	if diff := cmp.Diff(want, report.Combine(steps), cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(report.Report{}),
		cmpopts.IgnoreFields(report.Summary{}, "Before", "After")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if one := report.Combine(steps[:1]); one != steps[0] {
		t.Errorf("one step is %+v", one)
	}
}
