package report_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
)

// A difference between two runs of the baseline is noise, also if the scheduler differs from both.
func TestNoiseIsShownApartFromDifferences(t *testing.T) {
	on := func(nodes map[string]string, evicted ...string) *report.Report {
		r := &report.Report{}
		for name, node := range nodes {
			if node == "" {
				r.Unplaced = append(r.Unplaced, report.Unplaced{Namespace: "n", Name: name})
				continue
			}
			r.Placements = append(r.Placements, report.Placement{Namespace: "n", Name: name, Node: node})
		}
		for _, name := range evicted {
			r.Evicted = append(r.Evicted, report.Placement{Namespace: "n", Name: name, Node: "old"})
		}
		r.Finish()
		return r
	}
	result := on(map[string]string{"same": "a", "moved": "b", "tied": "a", "tied-too": "c", "refused": "", "fits": "a",
		"nowhere": ""}, "low")
	baseline := on(map[string]string{"same": "a", "moved": "a", "tied": "a", "tied-too": "a", "refused": "a", "fits": "",
		"nowhere": ""}, "both")
	repeated := on(map[string]string{"same": "a", "moved": "a", "tied": "b", "tied-too": "b", "refused": "a", "fits": "",
		"nowhere": ""}, "both")
	repeated.Scheduler, baseline.Scheduler, baseline.Release = "b", "b", "v1.24.3"
	got := report.NewComparison(result, baseline, repeated, "b.yaml")
	want := &report.Comparison{
		Against: "b.yaml", Release: "v1.24.3", Scheduler: "b", Baseline: baseline.Summary, Repeated: repeated.Summary,
		Same: 2,
		Differences: []report.Difference{
			{Namespace: "n", Name: "both", Node: "old"},
			{Namespace: "n", Name: "fits", Node: "a"},
			{Namespace: "n", Name: "low", Baseline: "old", Repeated: "old"},
			{Namespace: "n", Name: "moved", Node: "b", Baseline: "a", Repeated: "a"},
			{Namespace: "n", Name: "refused", Baseline: "a", Repeated: "a"},
		},
		Noise: []report.Difference{
			{Namespace: "n", Name: "tied", Node: "a", Baseline: "a", Repeated: "b"},
			{Namespace: "n", Name: "tied-too", Node: "c", Baseline: "a", Repeated: "b"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
