//go:build linux && releases

package simulate

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/decision"
)

// Releases for each form of the log and of the plugin sets: no structured messages, no default
// plugins in the written configuration, no multiPoint, contextual logging, the newest one.
func TestEachNodeIsExplainedInOtherReleases(t *testing.T) {
	t.Parallel()
	for _, release := range []string{"v1.20.15", "v1.21.14", "v1.22.17", "v1.23.17", "v1.26.15", "v1.29.2", "v1.34.2",
		"v1.37.1"} {
		t.Run(release, func(t *testing.T) {
			r := explained(t, exactCluster(), release, "large", pack.Scheduler{})
			want := map[string][]string{
				"full": {"NodeResourcesFit"}, "cordoned": {"NodeUnschedulable", "TaintToleration"}, "tainted": {"TaintToleration"},
				"tiny": {"NodeResourcesFit", "TaintToleration"}, "port": {"InterPodAffinity"},
			}
			got := refused(r)
			for _, by := range got {
				slices.Sort(by)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("refused nodes (-want +got):\n%s", diff)
			}
			if r.Node != "small" || r.Nodes[0].Name != "small" || len(r.Notes) > 0 {
				t.Errorf("node %s, nodes %v, notes %q", r.Node, r.Nodes, r.Notes)
			}
			for _, name := range []string{"small", "large"} {
				scores, sum := scored(r, name), int64(0)
				for by, score := range scores {
					if by != "total" {
						sum += score
					}
				}
				if len(scores) < 5 || sum != scores["total"] {
					t.Errorf("node %s: the scores %v have the sum %d", name, scores, sum)
				}
			}
			if r.Chosen == nil || r.Chosen.Outcome != decision.Lower || r.Chosen.Differences[0].By != "NodeAffinity" {
				t.Errorf("chosen %+v", r.Chosen)
			}
		})
	}
}

// Releases without and with hints which events have a plugin try again.
func TestEphemeralVolumesAreExaminedInOtherReleases(t *testing.T) {
	t.Parallel()
	for _, release := range []string{"v1.29.2", "v1.37.1"} {
		t.Run(release, func(t *testing.T) { examinesEphemeralVolumes(t, release) })
	}
}
