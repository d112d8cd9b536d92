package tune

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
)

func TestMeasure(t *testing.T) {
	resources := []report.Balance{
		{Resource: "cpu", CoefficientOfVariation: 0.5}, {Resource: "example.com/gpu", CoefficientOfVariation: 8},
		{Resource: "memory", CoefficientOfVariation: 0.25}, {Resource: "pods", CoefficientOfVariation: 4},
	}
	for _, tc := range []struct {
		name    string
		summary report.Summary
		want    Figures // in the order of Objectives
	}{
		{"all figures", report.Summary{Moved: 5, Evicted: 2, Unplaced: 9, After: &report.Distribution{
			EmptyNodes: []string{"a", "b", "c"}, Resources: resources, Workloads: 8, OneZone: 4,
			Cost: &report.Cost{Nodes: 10, EmptyNodes: 2.5},
		}}, Figures{3, 0.375, 4, 7, 7.5, 9}},
		{"only CPU", report.Summary{After: &report.Distribution{Resources: resources[:2]}}, Figures{0, 0.5, 0, 0, 0, 0}},
		{"without a distribution", report.Summary{Unplaced: 1, Before: &report.Distribution{OneZone: 4}},
			Figures{0, 0, 0, 0, 0, 1}},
	} {
		if diff := cmp.Diff(tc.want, figuresOf(Objectives(), &report.Report{Summary: tc.summary})); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
	three := report.Report{Summary: report.Summary{Unplaced: 3}}
	if diff := cmp.Diff(Figures{3, 0}, figuresOf([]Objective{{Name: Unplaced}, {Name: Moves}}, &three)); diff != "" {
		t.Errorf("the figures are not in the order of the objectives: %s", diff)
	}
}

func TestMean(t *testing.T) {
	if diff := cmp.Diff(Figures{2, 5}, mean([]Figures{{1, 4}, {3, 6}})); diff != "" {
		t.Error(diff)
	}
}

func TestFormat(t *testing.T) {
	for value, want := range map[float64]string{2: "2", 0.5: "0.5", 0.0004: "0", 0.0006: "0.001", -1.2346: "-1.235"} {
		if got := Format(value); got != want {
			t.Errorf("%v became %s, want %s", value, got, want)
		}
	}
}

func TestParseObjectives(t *testing.T) {
	all := Objectives()
	for _, o := range all {
		if o.Higher != (o.Name == EmptyNodes) {
			t.Errorf("%s: more is better: %t", o.Name, o.Higher)
		}
	}
	const names = "must be one or several of empty-nodes, spread, zones, moves, cost, unplaced"
	for _, tc := range []struct {
		text  string
		want  []Objective
		error string
	}{
		{"unplaced, empty-nodes,unplaced", []Objective{all[5], all[0]}, ""},
		{"empty-nodes,spread,zones,moves,cost,unplaced", all, ""},
		{"empty-nodes,fast", nil, `"fast": ` + names},
		{"", nil, `"": ` + names},
	} {
		found, err := ParseObjectives(tc.text)
		message := ""
		if err != nil {
			message = err.Error()
		}
		if diff := cmp.Diff(tc.want, found); diff != "" || message != tc.error {
			t.Errorf("%q: error %q, %s", tc.text, message, diff)
		}
	}
}
