//go:build linux && releases

package simulate

import (
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/foresight/upgrades"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Each upgrade changes what happens to the pods that use what it changes, and to no others: the
// snapshot has pods for all changes, and pods that have several equally good nodes. The reasons are
// in docs/upgrade.md. Status is 0 if nothing differs and no known problem comes.
func TestKnownChangesOfUpgradesAreSimulated(t *testing.T) {
	more, fewer, moved := upgrades.NewlyFits, upgrades.FitsNoMore, upgrades.Moves
	for _, tc := range []struct {
		from, to string
		want     map[string]string
		status   int
	}{
		{"v1.20.15", "v1.21.3", map[string]string{}, 3}, // kubernetes#109442 comes
		{"v1.21.3", "v1.22.2", map[string]string{"spaces-2": fewer}, 3},
		{"v1.22.2", "v1.23.17", map[string]string{"weights": moved}, 3},
		{"v1.23.17", "v1.24.3", map[string]string{"everything-1": more, "one-is-missing": fewer}, 3},
		{"v1.24.3", "v1.25.4", map[string]string{}, 3}, // kubernetes#115347 comes
		{"v1.25.4", "v1.26.3", map[string]string{"taints-2": more, "taints-3": more}, 3},
		{"v1.26.3", "v1.27.3", map[string]string{"domains-2": fewer, "gated": fewer, "everything-2": more, "keys-2": more}, 3},
		{"v1.27.3", "v1.28.15", map[string]string{"cpu-only": more, "one-is-missing": more}, 3},
		{"v1.28.15", "v1.29.2", map[string]string{"sidecar": fewer, "one-is-missing": fewer}, 3},
		{"v1.29.2", "v1.30.14", map[string]string{"init-image": moved, "one-is-missing": more}, 3},
		{"v1.30.14", "v1.31.0", map[string]string{"apart-2": more}, 3},
		{"v1.31.0", "v1.32.2", map[string]string{}, 0},
		{"v1.32.2", "v1.33.13", map[string]string{"best-effort": moved}, 3},
		{"v1.33.13", "v1.34.2", map[string]string{"pod-level": fewer}, 3},
		{"v1.34.2", "v1.35.4", map[string]string{}, 0},
		{"v1.35.4", "v1.36.3", map[string]string{"balance": moved}, 3},
		{"v1.36.3", "v1.37.1", map[string]string{}, 0},
		{"v1.24.3", "v1.37.1", map[string]string{"taints-2": more, "taints-3": more, "domains-2": fewer, "gated": fewer,
			"everything-2": more, "keys-2": more, "cpu-only": more, "sidecar": fewer, "one-is-missing": more, "init-image": moved,
			"apart-2": more, "best-effort": moved, "pod-level": fewer, "balance": moved}, 3},
	} {
		t.Run(tc.from+" to "+tc.to, func(t *testing.T) {
			r := upgraded(t, tc.from, tc.to, tc.status)
			got := map[string]string{}
			for _, d := range r.Placements.Differences {
				got[d.Name] = d.Kind
			}
			equal(t, "pods that differ", tc.want, got)
			from, err := versions.Parse(tc.from)
			if err != nil {
				t.Fatal(err)
			}
			// From 1.35 on the first of equally good nodes is the same one in each run. Before, a pod is a
			// tie if there are several runs, because something differs.
			ordered, ties := from.Rules().OrderedTies, r.Placements.Ties
			if ordered && ties > 0 || !ordered && ties == 0 && len(tc.want) > 0 {
				t.Errorf("%d pods are ties", ties)
			}
		})
	}
}
