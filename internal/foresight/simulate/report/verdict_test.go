package report_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
)

// summary returns the figures of a run on eight nodes at 2 units that places pods, evicts some and
// leaves nodes empty.
func summary(placed, evicted, empty int) report.Summary {
	return report.Summary{
		Nodes: 8, Scheduled: 10, Placed: placed, Evicted: evicted, Before: &report.Distribution{},
		After: &report.Distribution{EmptyNodes: make([]string, empty),
			Cost: &report.Cost{Nodes: 16, EmptyNodes: 2 * float64(empty)}},
	}
}

func TestVerdictNamesWhatBothRunsOfTheBaselineMiss(t *testing.T) {
	own := func(s report.Summary) *report.Report {
		return &report.Report{Scheduler: "packer", Summary: s}
	}
	against := func(s, first, second report.Summary) *report.Report {
		r := own(s)
		r.Comparison = &report.Comparison{Against: "default", Baseline: first, Repeated: second}
		return r
	}
	unknown := report.Summary{Scheduled: 1, Placed: 1}
	const packer = "packer: 10 of 10 pods placed, 3 of 8 nodes empty (before: 0), empty nodes cost 6 of 16 units (37.5 %)"
	for name, tc := range map[string]struct {
		result *report.Report
		want   []string
	}{
		"alone":           {own(summary(10, 0, 3)), []string{packer}},
		"without figures": {own(unknown), []string{"packer: 1 of 1 pod placed"}},
		"better": {against(summary(10, 0, 3), summary(9, 1, 0), summary(8, 2, 1)), []string{packer,
			"default: 9 of 10 pods placed, 1 evicted, 0 of 8 nodes empty (before: 0), empty nodes cost 0 of 16 units (0.0 %)",
			"compared with default, packer places 1 more pod, evicts 1 fewer pod, leaves 2 more nodes empty, " +
				"leaves nodes empty that cost 4 more units"}},
		"within the noise": {against(summary(10, 0, 3), summary(10, 0, 2), summary(9, 0, 4)), []string{packer,
			"default: 10 of 10 pods placed, 2 of 8 nodes empty (before: 0), empty nodes cost 4 of 16 units (25.0 %)",
			"packer is neither better nor worse than default in these figures"}},
		"figures of one side": {against(summary(10, 0, 3), unknown, unknown), []string{packer,
			"default: 1 of 1 pod placed", "compared with default, packer places 9 more pods"}},
	} {
		if diff := cmp.Diff(tc.want, tc.result.Verdict()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
