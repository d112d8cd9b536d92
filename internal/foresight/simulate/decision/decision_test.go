package decision

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// input has nodes a to f: a and b are scored, an extender refuses c, plugins refuse the others.
func input() Input {
	return Input{
		Namespace: "shop", Pod: "web", Release: "v1.24.3", Scheduler: "default-scheduler", Selected: "a", Examined: true,
		Nodes: []string{"a", "b", "c", "d", "e", "f"},
		Filters: []Filter{
			{Plugin: "TaintToleration", Passed: []string{"a", "b", "c", "d"}, Reasons: []string{
				"node(s) had untolerated taint"}},
			{Plugin: "NodePorts", Passed: []string{"a", "b", "c", "d", "e", "f"}},
			{Plugin: "NodeResourcesFit", Passed: []string{"a", "b", "c", "e"}, Reasons: []string{
				"Insufficient cpu", "Insufficient memory"}},
		},
		Passed: []string{"a", "b", "c"},
		Stages: []Stage{{Extender: "http://x", Passed: []string{"a", "b"}}},
		Scores: &Scores{
			Total:     map[string]int64{"a": 190, "b": 120},
			Plugins:   map[string]map[string]int64{"Fit": {"a": 40, "b": 60}, "Affinity": {"a": 150, "b": 0}},
			Extenders: map[string]map[string]int64{"http://x": {"a": 0, "b": 3}, "http://recorder": {"a": 0, "b": 0}},
		},
		Weights:         map[string]int64{"Fit": 1, "Affinity": 3},
		ExtenderWeights: map[string]int64{"http://x": 2},
	}
}

func TestResultHasEveryNode(t *testing.T) {
	total := func(n int64) *int64 { return &n }
	want := &Result{
		Namespace: "shop", Pod: "web", Release: "v1.24.3", Scheduler: "default-scheduler", Node: "a",
		Nodes: []Node{
			{Name: "a", Score: total(190), Scores: []Score{
				{By: "Affinity", Score: 150, Weight: 3}, {By: "Fit", Score: 40, Weight: 1}, {By: "http://x", Weight: 2,
					Extender: true},
			}},
			{Name: "b", Score: total(120), Scores: []Score{
				{By: "Affinity", Weight: 3}, {By: "Fit", Score: 60, Weight: 1}, {By: "http://x", Score: 60, Weight: 2,
					Extender: true},
			}},
			{Name: "c", Refused: []string{"http://x"}},
			{Name: "d", Refused: []string{"NodeResourcesFit"}},
			{Name: "e", Refused: []string{"TaintToleration"}},
			{Name: "f", Refused: []string{"TaintToleration", "NodeResourcesFit"}},
		},
		Refusals: []Refusal{
			{By: "TaintToleration", Nodes: 2, Only: 1, Reasons: []string{"node(s) had untolerated taint"}},
			{By: "NodeResourcesFit", Nodes: 2, Only: 1, Reasons: []string{"Insufficient cpu", "Insufficient memory"}},
			{By: "http://x", Nodes: 1, Only: 1},
		},
	}
	if diff := cmp.Diff(want, New(input(), "")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestChosenNode(t *testing.T) {
	tied := func(in *Input) {
		in.Scores.Total["b"] = 190
		in.Scores.Plugins["Affinity"]["b"] = 70
	}
	for name, tt := range map[string]struct {
		node   string
		change func(in *Input)
		want   *Chosen
	}{
		"lower": {"b", nil, &Chosen{
			Node: "b", Outcome: Lower, Best: "a", Lacks: 70,
			Differences: []Difference{{By: "Affinity", Weight: 3, Best: 150}, {By: "Fit", Weight: 1, Score: 60, Best: 40},
				{By: "http://x", Weight: 2, Score: 60}},
			// 190 - 120 = 70: with Affinity 1, b has 120 and a 90; with 2, 120 and 140.
			Changes: []Change{{By: "Affinity", Weight: 3, To: 1}, {By: "http://x", Weight: 2, To: 5},
				{By: "Fit", Weight: 1, To: 5}},
		}},
		"selected": {"a", nil, &Chosen{
			Node: "a", Outcome: Selected, Best: "b", Lacks: -70,
			Differences: []Difference{{By: "http://x", Weight: 2, Best: 60}, {By: "Fit", Weight: 1, Score: 40, Best: 60},
				{By: "Affinity", Weight: 3, Score: 150}},
		}},
		"tied": {"b", tied, &Chosen{
			Node: "b", Outcome: Tied, Best: "a",
			Differences: []Difference{{By: "Affinity", Weight: 3, Score: 70, Best: 150},
				{By: "Fit", Weight: 1, Score: 60, Best: 40}, {By: "http://x", Weight: 2, Score: 60}},
			Changes: []Change{{By: "Affinity", Weight: 3, To: 2}, {By: "Fit", Weight: 1, To: 2},
				{By: "http://x", Weight: 2, To: 3}},
		}},
		"refused": {"f", nil, &Chosen{Node: "f", Outcome: Refused, Refusals: []Refusal{
			{By: "TaintToleration", Nodes: 2, Only: 1, Reasons: []string{"node(s) had untolerated taint"}},
			{By: "NodeResourcesFit", Nodes: 2, Only: 1, Reasons: []string{"Insufficient cpu", "Insufficient memory"}},
		}}},
		"not scored": {"b", func(in *Input) { in.Scores = nil }, &Chosen{Node: "b", Outcome: Unscored}},
	} {
		t.Run(name, func(t *testing.T) {
			in := input()
			if tt.change != nil {
				tt.change(&in)
			}
			if diff := cmp.Diff(tt.want, New(in, tt.node).Chosen); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A weight cannot help against a node that is better in everything, or against two nodes that need
// opposite changes.
func TestNoWeightMayBeEnough(t *testing.T) {
	in := input()
	in.Nodes, in.Passed, in.Stages = []string{"a", "b", "c"}, []string{"a", "b", "c"}, nil
	in.Filters = nil
	in.Scores = &Scores{
		Total:   map[string]int64{"a": 150, "b": 100, "c": 150},
		Plugins: map[string]map[string]int64{"Fit": {"a": 100, "b": 50, "c": 50}, "Affinity": {"a": 50, "b": 50, "c": 100}},
	}
	r := New(in, "b")
	if len(r.Chosen.Changes) > 0 || r.Chosen.Lacks != 50 {
		t.Errorf("%+v", r.Chosen)
	}
	if diff := cmp.Diff([]string{"a", "c"}, r.Tied); diff != "" {
		t.Errorf("tied (-want +got):\n%s", diff)
	}
}

func TestPluginsThatDependOnOthersAreReported(t *testing.T) {
	in := input()
	in.Filters[1].Passed = []string{"b", "c", "d", "e", "f"} // refuses a alone, but not with the others
	in.Passed, in.Stages, in.Scores = []string{"a", "b"}, nil, nil
	r := New(in, "")
	want := map[string][]string{"c": {unknownPlugin}, "d": {"NodeResourcesFit"}, "e": {"TaintToleration"},
		"f": {"TaintToleration", "NodeResourcesFit"}}
	got := map[string][]string{}
	for _, n := range r.Nodes {
		if len(n.Refused) > 0 {
			got[n.Name] = n.Refused
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
	if len(r.Notes) != 2 {
		t.Errorf("notes %q", r.Notes)
	}
	// Without a cycle that examined the nodes, and after an eviction, nothing can be compared.
	in.Examined = false
	if r := New(in, ""); len(r.Notes) > 0 || len(r.Nodes[0].Refused) > 0 {
		t.Errorf("notes %q, nodes %v", r.Notes, r.Nodes)
	}
	in.Filters[0].Failed = "the server is gone"
	if r := New(in, ""); len(r.Notes) != 1 {
		t.Errorf("notes %q", r.Notes)
	}
}
