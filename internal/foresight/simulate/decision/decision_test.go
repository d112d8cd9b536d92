package decision

import (
	"fmt"
	"math/rand/v2"
	"slices"
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
		"not scored":           {"b", func(in *Input) { in.Scores = nil }, &Chosen{Node: "b", Outcome: Unscored}},
		"selected, not scored": {"a", func(in *Input) { in.Scores = nil }, &Chosen{Node: "a", Outcome: Selected}},
		"selected, scored before others fell out": {"a", func(in *Input) { delete(in.Scores.Total, "a") },
			&Chosen{Node: "a", Outcome: Selected}},
		"the only scored one": {"a", func(in *Input) { delete(in.Scores.Total, "b") }, &Chosen{Node: "a", Outcome: Selected}},
		"unknown":             {"z", nil, nil},
		"scored by an extender alone": {"b", func(in *Input) { delete(in.Scores.Extenders["http://x"], "a") }, &Chosen{
			Node: "b", Outcome: Lower, Best: "a", Lacks: 70,
			Differences: []Difference{{By: "Affinity", Weight: 3, Best: 150}, {By: "Fit", Weight: 1, Score: 60, Best: 40},
				{By: "http://x", Weight: 2, Score: 60}},
			Changes: []Change{{By: "Affinity", Weight: 3, To: 1}, {By: "http://x", Weight: 2, To: 5},
				{By: "Fit", Weight: 1, To: 5}},
		}},
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

// The suggested weight is the nearest one of all weights with which the node beats all others.
func TestSuggestedWeightsAreTheNearestWinningOnes(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	found := 0
	for range 500 {
		var nodes []Node
		w := 1 + random.Int64N(5)
		for i := range 2 + random.IntN(3) {
			by := w * random.Int64N(11)
			total := by + random.Int64N(60)
			scores := []Score{{By: "p", Score: by, Weight: w}}
			nodes = append(nodes, Node{Name: fmt.Sprint(i), Score: &total, Scores: scores})
		}
		nodes = append(nodes, Node{Name: "unscored"}) // it is not in the way
		wins := func(weight int64) bool {
			score := func(n Node) int64 { return *n.Score + (weight-w)*n.Scores[0].Score/w }
			return !slices.ContainsFunc(nodes[1:len(nodes)-1], func(n Node) bool { return score(n) >= score(nodes[0]) })
		}
		want, ok := int64(0), false
		for weight := range int64(maxWeight + 1) {
			if wins(weight) && (!ok || abs(weight-w) < abs(want-w)) {
				want, ok = weight, true
			}
		}
		r := Result{Nodes: nodes}
		got, gotOK := r.winningWeight(nodes[0], nodes[0].Scores[0])
		if got != want || gotOK != ok {
			t.Fatalf("%+v: got %d, %t, want %d, %t", nodes, got, gotOK, want, ok)
		}
		if ok {
			found++
		}
	}
	if found < 100 || found > 400 {
		t.Errorf("%d of 500 can win: these are not typical cases", found)
	}
	// A weight above 1000 is not suggested.
	for best, want := range map[int64]bool{998: true, 999: false} {
		own := int64(0)
		r := Result{Nodes: []Node{{Name: "n", Score: &own, Scores: []Score{{By: "p", Score: 1, Weight: 1}}},
			{Name: "o", Score: &best}}}
		if to, ok := r.winningWeight(r.Nodes[0], r.Nodes[0].Scores[0]); ok != want || ok && to != 1000 {
			t.Errorf("%d behind: weight %d, %t", best, to, ok)
		}
	}
}

func TestScoresOfPluginsAndExtendersWithoutAWeight(t *testing.T) {
	in := input()
	in.Stages = append(in.Stages, Stage{Extender: "http://y", Passed: []string{"b"}})
	in.Selected, in.From, in.Message, in.Notes = "b", "z", "why", []string{"a note"}
	delete(in.Weights, "Fit") // a weight of 0 is the default of 1
	delete(in.Scores.Plugins["Affinity"], "b")
	in.Scores.Extenders["http://y"] = map[string]int64{"b": 1}
	in.ExtenderWeights["http://y"] = 5
	r := New(in, "")
	total := int64(120)
	want := []Node{
		{Name: "b", Score: &total, Scores: []Score{{By: "Fit", Score: 60, Weight: 1},
			{By: "http://x", Score: 60, Weight: 2, Extender: true}, {By: "http://y", Score: 50, Weight: 5, Extender: true}}},
		{Name: "a", Refused: []string{"http://y"}}, {Name: "c", Refused: []string{"http://x"}},
		{Name: "d", Refused: []string{"NodeResourcesFit"}}, {Name: "e", Refused: []string{"TaintToleration"}},
		{Name: "f", Refused: []string{"TaintToleration", "NodeResourcesFit"}},
	}
	if diff := cmp.Diff(want, r.Nodes); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	r.Nodes, r.Refusals = nil, nil
	all := &Result{Namespace: "shop", Pod: "web", Release: "v1.24.3", Scheduler: "default-scheduler", Node: "b", From: "z",
		Message: "why", Notes: []string{"a note"}}
	if diff := cmp.Diff(all, r); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
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
	notes := []string{"1 node is refused by all plugins together, and by none of them alone",
		"plugin NodePorts alone refuses 1 node that it does not refuse with the others"}
	if diff := cmp.Diff(notes, r.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	// Without a cycle that examined the nodes, and after an eviction, nothing can be compared.
	in.Examined = false
	refused := New(in, "")
	in.Examined, in.Evicted = true, []string{"shop/low"}
	for _, r := range []*Result{refused, New(in, "")} {
		if len(r.Notes) > 0 || r.Nodes[2].Name != "a" || !slices.Equal(r.Nodes[2].Refused, []string{"NodePorts"}) {
			t.Errorf("notes %q, nodes %v", r.Notes, r.Nodes)
		}
	}
	in.Filters[0].Failed = "the server is gone"
	r = New(in, "")
	notes = []string{"plugin TaintToleration failed without the others, so that its refusals are missing: the server is gone"}
	if diff := cmp.Diff(notes, r.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	refusals := []Refusal{{By: "NodeResourcesFit", Nodes: 2, Only: 2, Reasons: []string{"Insufficient cpu",
		"Insufficient memory"}}, {By: "NodePorts", Nodes: 1, Only: 1}}
	if diff := cmp.Diff(refusals, r.Refusals); diff != "" {
		t.Errorf("refusals (-want +got):\n%s", diff)
	}
}
