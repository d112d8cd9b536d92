package versions

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestGatesOfAMinorRelease(t *testing.T) {
	for _, tc := range []struct {
		gate   string
		states map[int]Gate
	}{
		{"GangScheduling", map[int]Gate{34: {}, 35: {Exists: true}, 36: {Exists: true}, 37: {}}},
		{"GenericWorkload", map[int]Gate{34: {}, 37: {Exists: true}}},
		{"EphemeralContainers", map[int]Gate{22: {Exists: true}, 23: {Exists: true, Default: true},
			26: {Exists: true, Default: true, Locked: true}, 27: {}}},
		{"NodeDeclaredFeatures", map[int]Gate{35: {Exists: true}, 36: {Exists: true, Default: true},
			37: {Exists: true, Default: true, Locked: true}}},
		{"WatchList", map[int]Gate{31: {Exists: true}, 32: {Exists: true, Default: true}, 33: {Exists: true},
			37: {Exists: true, Default: true}}},
		{"ContextualLogging", map[int]Gate{23: {}, 24: {Exists: true}, 30: {Exists: true, Default: true}}},
	} {
		for minor, want := range tc.states {
			if got := (Release{Major: 1, Minor: minor}).Gates()[tc.gate]; got != want {
				t.Errorf("%s in 1.%d: %s, want %s", tc.gate, minor, got, want)
			}
		}
	}
	for _, line := range gates() {
		if !slices.IsSorted(line.minors) || len(line.minors) != len(line.history) {
			t.Errorf("%s: minor releases %v", line.name, line.minors)
		}
		for i, gate := range line.history {
			if gate != ParseGate(gate.String()) || i == 0 && !gate.Exists || i > 0 && gate == line.history[i-1] {
				t.Errorf("%s from 1.%d: %s", line.name, line.minors[i], gate)
			}
		}
	}
}

// The tables name gates that the release has.
func TestGatesInTheRulesExist(t *testing.T) {
	for _, release := range Releases() {
		rules, known := release.Rules(), release.Gates()
		for _, gate := range rules.Gangs.Gates {
			if !known[gate].Exists {
				t.Errorf("%s has no feature gate %s", release, gate)
			}
		}
		if got := known["CoordinatedLeaderElection"]; got.Exists != rules.CoordinatedLeaderElection || got.Locked {
			t.Errorf("%s: CoordinatedLeaderElection is %s", release, got)
		}
		if got := known["OpportunisticBatching"].Default; got != rules.Batching {
			t.Errorf("%s: OpportunisticBatching is %v", release, got)
		}
	}
}

func TestGateChanges(t *testing.T) {
	for name, tc := range map[string]struct {
		gate     string
		from, to string
		set      bool // by a flag
		want     string
	}{
		"the default changes":            {"EphemeralContainers", "v1.22.2", "v1.23.17", false, "off → on"},
		"it is locked":                   {"NodeDeclaredFeatures", "v1.36.3", "v1.37.1", false, "on → locked-on, scheduling"},
		"it is new and off":              {"NodeDeclaredFeatures", "v1.34.2", "v1.35.4", false, ""},
		"it is new, off and set":         {"NodeDeclaredFeatures", "v1.34.2", "v1.35.4", true, "- → off, scheduling"},
		"it is new and on":               {"NodeDeclaredFeatures", "v1.34.2", "v1.36.3", false, "- → on, scheduling"},
		"it is gone with its default":    {"GangScheduling", "v1.35.4", "v1.37.1", false, ""},
		"it is gone and set":             {"GangScheduling", "v1.35.4", "v1.37.1", true, "off → -, scheduling"},
		"it is gone with the other":      {"AnonymousAuthConfigurableEndpoints", "v1.31.4", "v1.37.1", false, "off → -"},
		"it is gone with the same later": {"AnonymousAuthConfigurableEndpoints", "v1.33.1", "v1.37.1", false, ""},
		"it does not change":             {"APIResponseCompression", "v1.20.15", "v1.37.1", true, ""},
		"back":                           {"EphemeralContainers", "v1.23.17", "v1.22.2", false, "on → off"},
	} {
		t.Run(name, func(t *testing.T) {
			set := map[string]bool{}
			if tc.set {
				set[tc.gate] = true
			}
			changes := GateChanges(release(t, tc.from), release(t, tc.to), set)
			if !slices.IsSortedFunc(changes, func(a, b GateChange) int { return cmp.Compare(a.Name, b.Name) }) {
				t.Errorf("not sorted: %v", changes)
			}
			got := ""
			for _, c := range changes {
				if c.Name == tc.gate {
					got = c.From.String() + " → " + c.To.String()
					if c.Scheduling {
						got += ", scheduling"
					}
				}
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestGatedPlugins(t *testing.T) {
	gangs := map[string]bool{"GangScheduling": true, "GenericWorkload": true, "DynamicResourceAllocation": true}
	off := map[string]bool{"DynamicResourceAllocation": false, "NodeDeclaredFeatures": false}
	for _, tc := range []struct {
		release string
		set     map[string]bool
		want    string
	}{
		{"v1.25.4", gangs, ""}, {"v1.26.3", gangs, "DynamicResources"}, {"v1.26.3", nil, ""},
		{"v1.34.2", nil, "DynamicResources"}, {"v1.34.2", gangs, "DynamicResources"}, {"v1.36.3", off, ""},
		{"v1.35.4", gangs, "DynamicResources GangScheduling"}, {"v1.36.3", gangs, "DynamicResources NodeDeclaredFeatures GangScheduling"},
		{"v1.36.3", map[string]bool{"GenericWorkload": true, "TopologyAwareWorkloadScheduling": true},
			"DynamicResources NodeDeclaredFeatures TopologyPlacementGenerator"},
		{"v1.37.1", map[string]bool{"GangScheduling": true}, "DynamicResources NodeDeclaredFeatures"},
		{"v1.37.1", gangs, "DynamicResources NodeDeclaredFeatures GangScheduling"},
		{"v1.99.0", map[string]bool{"InPlacePodVerticalScalingSchedulerPreemption": true},
			"DynamicResources NodeDeclaredFeatures DeferredPodScheduling"},
	} {
		if got := strings.Join(release(t, tc.release).GatedPlugins(tc.set), " "); got != tc.want {
			t.Errorf("%s with %v: got %q, want %q", tc.release, tc.set, got, tc.want)
		}
	}
}

func TestFitGates(t *testing.T) {
	for name, tc := range map[string]struct{ release, value, fitting, note, refused string }{
		"a gate that is gone": {release: "v1.37.1", value: "GenericWorkload=true,GangScheduling=true",
			fitting: "GenericWorkload=true", note: "GangScheduling=true left out: v1.37.1 does not have it; 1.36,"},
		"a gate that still exists": {release: "v1.36.3", value: "GenericWorkload=true,GangScheduling=true",
			fitting: "GenericWorkload=true,GangScheduling=true"},
		"a gate that is locked to the value": {release: "v1.37.1", value: "NodeDeclaredFeatures=true",
			note: "NodeDeclaredFeatures=true left out: v1.37.1 locks it to this value"},
		"a gate that is locked to the other value": {release: "v1.37.1", value: "NodeDeclaredFeatures=false",
			refused: "feature gate NodeDeclaredFeatures=false cannot be set: v1.37.1 locks it to true"},
		"a gate of a later release": {release: "v1.34.2", value: "GangScheduling=true",
			note: "v1.34.2 does not have it yet"},
		"unknown names and values": {release: "v1.37.1", value: "AllAlpha=true, Mine=1,GangScheduling=maybe",
			fitting: "AllAlpha=true, Mine=1,GangScheduling=maybe"},
	} {
		t.Run(name, func(t *testing.T) {
			release, err := Parse(tc.release)
			if err != nil {
				t.Fatal(err)
			}
			fitting, notes, err := FitGates(tc.value, release)
			if tc.refused != "" {
				var invalid *Error
				if !errors.As(err, &invalid) || err.Error() != tc.refused || invalid.Hint() == "" {
					t.Errorf("got %q, %v", fitting, err)
				}
				return
			}
			if err != nil || fitting != tc.fitting || !strings.Contains(strings.Join(notes, "\n"), tc.note) ||
				len(notes) > 0 != (tc.note != "") {
				t.Errorf("got %q, notes %q, %v", fitting, notes, err)
			}
		})
	}
}
