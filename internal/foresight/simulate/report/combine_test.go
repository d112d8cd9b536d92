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

// A pod was placed, loses its node in a later step, and gets one in the last.
func TestLaterStepsReplaceEarlierDecisions(t *testing.T) {
	at := func(name, node, from string) report.Placement {
		return report.Placement{Namespace: "n", Name: name, Node: node, From: from}
	}
	not := func(name, from, reason string) report.Unplaced {
		return report.Unplaced{Namespace: "n", Name: name, From: from, Reason: reason}
	}
	low := at("new", "b", "")
	low.By = "n/high"
	steps := []*report.Report{
		{Placements: []report.Placement{at("falls", "b", "a"), at("new", "b", "")},
			Unplaced: []report.Unplaced{not("waits", "a", "x")},
			Notes:    []string{"all", "first"}, Summary: report.Summary{ScheduleSeconds: 1}},
		{Placements: []report.Placement{at("waits", "c", "")}, Unplaced: []report.Unplaced{not("falls", "b", "full")},
			Evicted: []report.Placement{low}, Notes: []string{"all", "some"}, Summary: report.Summary{ScheduleSeconds: 2}},
		{Unplaced: []report.Unplaced{not("waits", "c", "full")}, Notes: []string{"some", "all"}},
	}
	evicted := not("new", "", report.Evicted)
	evicted.By = "n/high"
	got := report.Combine(steps)
	want := []report.Unplaced{not("falls", "a", "full"), evicted, not("waits", "a", "full")}
	if diff := cmp.Diff(want, got.Unplaced); diff != "" || len(got.Placements) > 0 || len(got.Evicted) > 0 {
		t.Errorf("placed %v, evicted %v, unplaced (-want +got):\n%s", got.Placements, got.Evicted, diff)
	}
	notes := []string{"all", "step 1: first", "step 2: some", "step 3: some"}
	if diff := cmp.Diff(notes, got.Notes); diff != "" || got.Summary.ScheduleSeconds != 3 {
		t.Errorf("%g s, notes (-want +got):\n%s", got.Summary.ScheduleSeconds, diff)
	}
}
