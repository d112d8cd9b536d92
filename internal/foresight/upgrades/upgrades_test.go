package upgrades_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/upgrades"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// at returns a scheduler with the default configuration at a release.
func at(t *testing.T, release versions.Release, preset string) *upgrades.Scheduler {
	t.Helper()
	r, err := profiles.Render(profiles.Request{Release: release, SchedulerName: "default-scheduler",
		Kubeconfig: "kubeconfig", Preset: preset})
	if err != nil {
		t.Fatal(err)
	}
	return &upgrades.Scheduler{Name: "default-scheduler", Release: release, Configuration: r.YAML}
}

// A change of behavior that is known for each minor release is found. The words are gates, plugins
// with their change, and issues.
func TestKnownChangesOfEachMinorRelease(t *testing.T) {
	known := map[int][]string{
		21: {"gate PodDisruptionBudget on → locked-on", "plugin NodeAffinity [preFilter preScore]"},
		22: {"gate PodAffinityNamespaceSelector off → on", "plugin VolumeRestrictions [preFilter]", "new kubernetes#120334"},
		23: {"plugin TaintToleration [] 1 → 3", "plugin NodeResourcesLeastAllocated - 1 → 0", "fixed kubernetes#110853"},
		24: {"gate DefaultPodTopologySpread on → locked-on", "new kubernetes#114526"},
		25: {"gate LocalStorageCapacityIsolation on → locked-on", "new kubernetes#115347"},
		26: {"gate NodeInclusionPolicyInPodTopologySpread off → on", "fixed kubernetes#115347"},
		27: {"gate MinDomainsInPodTopologySpread off → on", "gate PodSchedulingReadiness off → on",
			"plugin SchedulingGates [preEnqueue]", "plugin NodeResourcesFit [preScore]"},
		28: {"plugin NodeVolumeLimits [preFilter]"},
		29: {"gate SidecarContainers off → on"},
		30: {"gate MinDomainsInPodTopologySpread on → locked-on", "plugin VolumeBinding [preScore]"},
		31: {"gate MatchLabelKeysInPodAffinity off → on", "new kubernetes#127584"},
		32: {"gate SchedulerQueueingHints off → on", "plugin DefaultPreemption [preEnqueue]", "plugin EBSLimits -"},
		33: {"gate SchedulerAsyncPreemption off → on", "gate SidecarContainers on → locked-on"},
		34: {"gate PodLevelResources off → on", "gate DynamicResourceAllocation off → on",
			"plugin DynamicResources [multiPoint]"},
		35: {"gate OpportunisticBatching - → on"},
		36: {"gate NodeDeclaredFeatures off → on", "plugin NodeDeclaredFeatures [multiPoint]"},
		37: {"gate StorageCapacityScoring off → on", "plugin NodeName [preFilter]"},
	}
	releases := versions.Releases()
	slices.Reverse(releases)
	for i, to := range releases[1:] {
		tables, err := upgrades.Compare(at(t, releases[i], ""), at(t, to, ""))
		if err != nil {
			t.Fatal(err)
		}
		got := words(tables)
		if len(known[to.Minor]) == 0 {
			t.Errorf("the test knows no change from %s to %s", releases[i], to)
		}
		for _, want := range known[to.Minor] {
			if !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, want) }) {
				t.Errorf("%s → %s: %q is missing in\n%s", releases[i], to, want, strings.Join(got, "\n"))
			}
		}
	}
}

func words(t *upgrades.Tables) (all []string) {
	for _, g := range t.Gates {
		if g.Scheduling {
			all = append(all, fmt.Sprintf("gate %s %s → %s", g.Name, g.From, g.To))
		}
	}
	for _, p := range t.Plugins {
		points := fmt.Sprint(p.Added)
		if len(p.Added) == 0 && len(p.Removed) > 0 {
			points = "-"
		}
		all = append(all, fmt.Sprintf("plugin %s %s %d → %d", p.Plugin, points, p.Weight, p.NewWeight))
	}
	for _, k := range t.New {
		all = append(all, "new "+k.Issue)
	}
	for _, k := range t.Fixed {
		all = append(all, "fixed "+k.Issue)
	}
	return all
}

func TestNothingDiffersAtTheSameRelease(t *testing.T) {
	for _, release := range versions.Releases() {
		tables, err := upgrades.Compare(at(t, release, "binpack"), at(t, release, "binpack"))
		if err != nil {
			t.Fatal(err)
		}
		if got := words(tables); len(got)+len(tables.Gates) > 0 {
			t.Errorf("%s: %v", release, got)
		}
	}
}

// A gate that flags set is marked, and decides about the plugin that it enables.
func TestGatesOfFlagsAreMarked(t *testing.T) {
	from, to := at(t, versions.Release{Major: 1, Minor: 33, Patch: 13}, ""), at(t, versions.Release{Major: 1, Minor: 34,
		Patch: 2}, "")
	from.Gates = map[string]bool{"DynamicResourceAllocation": false}
	to.Gates = from.Gates
	tables, err := upgrades.Compare(from, to)
	if err != nil {
		t.Fatal(err)
	}
	if len(tables.Plugins) > 0 {
		t.Errorf("plugins differ: %+v", tables.Plugins)
	}
	at := slices.IndexFunc(tables.Gates, func(g upgrades.Gate) bool { return g.Name == "DynamicResourceAllocation" })
	if at < 0 || tables.Gates[at].Set == nil || *tables.Gates[at].Set {
		t.Errorf("the gate is not marked: %+v", tables.Gates)
	}
}

// run is the result of a simulation; a pod without a node is unplaced.
func run(nodes map[string]string) *report.Report {
	r := &report.Report{}
	for name, node := range nodes {
		if node == "" {
			r.Unplaced = append(r.Unplaced, report.Unplaced{Namespace: "n", Name: name, Reason: "too large"})
			continue
		}
		r.Placements = append(r.Placements, report.Placement{Namespace: "n", Name: name, Node: node})
	}
	r.Finish()
	return r
}

func TestPlacementsDifferWithoutTies(t *testing.T) {
	from := []*report.Report{
		run(map[string]string{"same": "a", "tied": "a", "moved": "a", "refused": "a", "fits": "", "varies": "a"}),
		run(map[string]string{"same": "a", "tied": "b", "moved": "a", "refused": "b", "fits": "", "varies": "b"}),
	}
	to := []*report.Report{
		run(map[string]string{"same": "a", "tied": "c", "moved": "b", "refused": "", "fits": "c", "varies": "c"}),
		run(map[string]string{"same": "a", "tied": "c", "moved": "b", "refused": "", "fits": "a", "varies": ""}),
	}
	got := upgrades.ComparePlacements(from, to)
	want := &upgrades.Placements{Runs: 2, NewRuns: 2, Pods: 6, Same: 1, Ties: 2, Placed: 5, NewPlaced: 5,
		Differences: []upgrades.Difference{
			{Namespace: "n", Name: "fits", Kind: upgrades.NewlyFits, NewNode: "c", Reason: "too large"},
			{Namespace: "n", Name: "moved", Kind: upgrades.Moves, Node: "a", NewNode: "b"},
			{Namespace: "n", Name: "refused", Kind: upgrades.FitsNoMore, Node: "a", Reason: "too large"},
		}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// More pods, and a side without random ties, need more runs of the other.
func TestRunsThatTellTiesFromDifferences(t *testing.T) {
	for _, tc := range []struct {
		pods        int
		from, to    bool // ordered
		runs, other int
	}{
		{1, false, false, 3, 3}, {3, false, false, 4, 4}, {100, false, false, 6, 6}, {1000, false, false, 8, 8},
		{10, false, true, 8, 2}, {10, true, true, 2, 2},
	} {
		p := &upgrades.Placements{Pods: tc.pods, Differences: make([]upgrades.Difference, 1)}
		from, to := upgrades.Side{Ordered: tc.from}, upgrades.Side{Ordered: tc.to}
		for n := 0; n == 0 || !p.Enough(from, to); n++ {
			from.Runs, to.Runs = from.Next(n), to.Next(n)
		}
		if from.Runs != tc.runs || to.Runs != tc.other {
			t.Errorf("%+v: %d and %d runs", tc, from.Runs, to.Runs)
		}
	}
}
