package upgrades

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/golden"
	"github.com/pmk-sched/pmk-sched/versions"
)

// at returns a scheduler with the default configuration at a release.
func at(t *testing.T, release versions.Release, preset string) *Scheduler {
	t.Helper()
	r, err := profiles.Render(profiles.Request{Release: release, SchedulerName: "default-scheduler",
		Kubeconfig: "kubeconfig", Preset: preset})
	if err != nil {
		t.Fatal(err)
	}
	return &Scheduler{Name: "default-scheduler", Release: release, Configuration: r.YAML}
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
		tables, err := compare(at(t, releases[i], ""), at(t, to, ""))
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

func words(t *Tables) (all []string) {
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
		tables, err := compare(at(t, release, "binpack"), at(t, release, "binpack"))
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
	tables, err := compare(from, to)
	if err != nil {
		t.Fatal(err)
	}
	if len(tables.Plugins) > 0 {
		t.Errorf("plugins differ: %+v", tables.Plugins)
	}
	at := slices.IndexFunc(tables.Gates, func(g Gate) bool { return g.Name == "DynamicResourceAllocation" })
	if at < 0 || tables.Gates[at].Set == nil || *tables.Gates[at].Set {
		t.Errorf("the gate is not marked: %+v", tables.Gates)
	}
}

// The profiles of one configuration are compared by name, and plugins by their extension points.
func TestPluginsOfProfilesAreCompared(t *testing.T) {
	release := versions.Release{Major: 1, Minor: 34, Patch: 2}
	of := func(profiles string) *Scheduler {
		return &Scheduler{Name: "n", Release: release, Configuration: []byte(
			"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n" + profiles)}
	}
	from := of(`- schedulerName: a
- schedulerName: old
- schedulerName: b
  plugins:
    score: {disabled: [{name: '*'}], enabled: [{name: NodeAffinity, weight: 5}, {name: ImageLocality, weight: 2}]}
    filter: {disabled: [{name: NodePorts}]}
    preFilter: {disabled: [{name: NodePorts}]}
`)
	to := of(`- schedulerName: b
  plugins:
    score: {disabled: [{name: '*'}], enabled: [{name: NodeAffinity, weight: 7}, {name: TaintToleration, weight: 4}]}
    reserve: {disabled: [{name: '*'}]}
    preBind: {disabled: [{name: VolumeBinding}]}
- schedulerName: new
- schedulerName: a
`)
	got, err := compare(from, to)
	if err != nil {
		t.Fatal(err)
	}
	want := &Tables{Gates: []Gate{}, Plugins: []Plugin{
		{Profile: "b", Plugin: "ImageLocality", Removed: []string{"score"}, Weight: 2},
		{Profile: "b", Plugin: "NodeAffinity", Weight: 5, NewWeight: 7},
		{Profile: "b", Plugin: "NodePorts", Added: []string{"filter", "preFilter"}},
		{Profile: "b", Plugin: "TaintToleration", Added: []string{"score"}, NewWeight: 4},
		{Profile: "b", Plugin: "VolumeBinding", Removed: []string{"preBind", "reserve"}},
	}, Fixed: []inspect.KnownProblem{}, New: []inspect.KnownProblem{}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for name, wrong := range map[string][2]*Scheduler{"from": {of("x"), to}, "to": {from, of("x")}} {
		if tables, err := compare(wrong[0], wrong[1]); err == nil || tables != nil ||
			!strings.HasPrefix(err.Error(), "v1.34.2: read which plugins a scheduler runs: ") {
			t.Errorf("%s: got %v, %v", name, tables, err)
		}
	}
}

// The tables of two releases are whole: with the problems that only one of them has, the gates that
// matter for scheduling, and those that flags set.
func TestTablesOfTwoReleases(t *testing.T) {
	from, to := at(t, versions.Release{Major: 1, Minor: 22, Patch: 2}, "binpack"),
		at(t, versions.Release{Major: 1, Minor: 24, Patch: 3}, "binpack")
	from.Gates = map[string]bool{"DefaultPodTopologySpread": true, "CSIMigrationAWS": false}
	to.Gates = from.Gates
	tables, err := compare(from, to)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent(tables, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "testdata/tables.json", string(text)+"\n")
}

func TestAnUpgradeIsWorseIfPodsOrProblemsChange(t *testing.T) {
	for _, tc := range []struct {
		name string
		r    Result
		want bool
	}{
		{"nothing", Result{}, false},
		{"blocked", Result{Blocked: "a plugin is gone"}, true},
		{"a new problem", Result{Tables: Tables{New: make([]inspect.KnownProblem, 1)}}, true},
		{"other tables", Result{Warnings: []string{"w"}, Tables: Tables{Gates: make([]Gate, 1),
			Plugins: make([]Plugin, 1), Fixed: make([]inspect.KnownProblem, 1)}}, false},
		{"the same placements", Result{Placements: &Placements{Ties: 1}}, false},
		{"a difference", Result{
			Placements: &Placements{Differences: make([]Difference, 1)}}, true},
	} {
		if got := tc.r.Worse(); got != tc.want {
			t.Errorf("%s: %t", tc.name, got)
		}
	}
}
