//go:build linux && releases

package simulate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/foresight/upgrades"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// Each upgrade changes what happens to pods in a way that is known: a gate for a field of pods is
// enabled (versions/gates.txt), which the API server of the release before drops.
func TestKnownChangesOfUpgradesAreSimulated(t *testing.T) {
	for _, tc := range []struct {
		file, from, to string
		want           map[string]string
	}{
		// NodeInclusionPolicyInPodTopologySpread
		{"node-inclusion.yaml", "v1.25.4", "v1.26.3", map[string]string{
			"web-2": upgrades.NewlyFits, "web-3": upgrades.NewlyFits}},
		// MinDomainsInPodTopologySpread, PodSchedulingReadiness, SidecarContainers, PodLevelResources
		{"new-fields.yaml", "v1.26.3", "v1.27.3", map[string]string{
			"few-domains-2": upgrades.FitsNoMore, "gated": upgrades.FitsNoMore}},
		{"new-fields.yaml", "v1.28.15", "v1.29.2", map[string]string{"sidecar": upgrades.FitsNoMore}},
		{"new-fields.yaml", "v1.33.13", "v1.34.2", map[string]string{"pod-level": upgrades.FitsNoMore}},
		{"new-fields.yaml", "v1.24.3", "v1.37.1", map[string]string{"few-domains-2": upgrades.FitsNoMore,
			"gated": upgrades.FitsNoMore, "sidecar": upgrades.FitsNoMore, "pod-level": upgrades.FitsNoMore}},
	} {
		t.Run(tc.from+" to "+tc.to, func(t *testing.T) {
			r := upgraded(t, upgradeSnapshot(tc.file), tc.from, tc.to, 3)
			got := map[string]string{}
			for _, d := range r.Placements.Differences {
				got[d.Name] = d.Kind
			}
			equal(t, "pods that differ", tc.want, got)
		})
	}
}

// Nothing that the pods use changes, and most of them have several equally good nodes.
func TestUpgradesWithoutAChangeReportNone(t *testing.T) {
	var objects strings.Builder
	for i := range 12 {
		objects.WriteString(node(fmt.Sprintf("node-%d", i), 8, "topology.kubernetes.io/zone: "+string(rune('a'+i%3)), ""))
	}
	for i := range 40 {
		objects.WriteString(pod(fmt.Sprintf("web-%d", i), "1", "labels: {app: web}", "", ""))
	}
	file := run.WriteFile(t, "ties.yaml", objects.String())
	for _, step := range [][2]string{{"v1.24.3", "v1.25.4"}, {"v1.25.4", "v1.26.3"}} {
		t.Run(step[0]+" to "+step[1], func(t *testing.T) {
			status := 0
			if step[1] == "v1.25.4" {
				status = 3 // kubernetes#115347 comes
			}
			r := upgraded(t, file, step[0], step[1], status)
			equal(t, "differences", []upgrades.Difference{}, r.Placements.Differences)
			equal(t, "pods", 40, r.Placements.Pods)
			if r.Placements.Ties == 0 {
				t.Error("no pod is a tie")
			}
		})
	}
}
