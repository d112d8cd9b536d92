package profiles_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

func TestFindUnbatchedNamesWhatPreventsBatching(t *testing.T) {
	const v1 = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
	const list = "  pluginConfig: [{name: PodTopologySpread, args: {defaultingType: List}}]\n"
	const spread = "plugin PodTopologySpread has default constraints (defaultingType: List without constraints removes " +
		"them)"
	const quiet = "plugin Quiet does not sign pods"
	profile := func(plugins string) string {
		return v1 + "profiles:\n- schedulerName: mine\n  plugins: " + plugins + "\n"
	}
	plugins := []profiles.Plugin{
		{Name: "Quiet", Points: []string{"filter", "reserve"}}, {Name: "Signer", Points: []string{"filter", "score"},
			Signs: true}, {Name: "Stamp", Points: []string{"preBind"}},
	}
	for name, tt := range map[string]struct {
		source, release string
		want            []profiles.Unbatched
	}{
		"before batching": {v1, "v1.34.2", nil},
		"defaults": {v1, "v1.35.4",
			[]profiles.Unbatched{{Profile: "default-scheduler", Reasons: []string{spread}}}},
		"no constraints": {profile("{}") + list, "v1.37.1", nil},
		"constraints of list": {profile("{}") + strings.Replace(list, "List",
			"List, defaultConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]", 1), "v1.37.1",
			[]profiles.Unbatched{{Profile: "mine", Reasons: []string{spread}}}},
		"PodTopologySpread is disabled": {
			profile("{multiPoint: {disabled: [{name: PodTopologySpread}]}}"), "v1.36.3", nil,
		},
		"PodTopologySpread is disabled at score only": {
			profile("{score: {disabled: [{name: PodTopologySpread}]}}"), "v1.36.3",
			[]profiles.Unbatched{{Profile: "mine", Reasons: []string{spread}}},
		},
		"a plugin everywhere": {
			profile("{multiPoint: {enabled: [{name: Quiet}, {name: Signer}, {name: Stamp}]}}") +
				list, "v1.37.1", []profiles.Unbatched{{Profile: "mine", Reasons: []string{quiet}}}},
		"a plugin at filter": {profile("{filter: {enabled: [{name: Quiet}]}}") + list, "v1.37.1",
			[]profiles.Unbatched{{Profile: "mine", Reasons: []string{quiet}}}},
		"a plugin at reserve only": {profile("{reserve: {enabled: [{name: Quiet}]}}") + list, "v1.37.1", nil},
		"a plugin disabled at filter": {
			profile("{multiPoint: {enabled: [{name: Quiet}]}, filter: {disabled: [{name: Quiet}]}}") + list, "v1.37.1", nil},
		"an in-tree plugin": {profile("{multiPoint: {enabled: [{name: DeferredPodScheduling}]}}") + list,
			"v1.37.1", []profiles.Unbatched{{Profile: "mine",
				Reasons: []string{"plugin DeferredPodScheduling does not sign pods"}}}},
		"an extender, for every profile": {v1 +
			"extenders: [{urlPrefix: 'http://a', filterVerb: f}]\nprofiles:\n- schedulerName: a\n" + list +
			"- schedulerName: b\n", "v1.37.1",
			[]profiles.Unbatched{{Profile: "a", Reasons: []string{"extender http://a is called"}},
				{Profile: "b", Reasons: []string{"extender http://a is called", spread}}}},
		"a release newer than the table": {v1, "v1.99.0",
			[]profiles.Unbatched{{Profile: "default-scheduler", Reasons: []string{spread}}}},
	} {
		t.Run(name, func(t *testing.T) {
			release, err := versions.Parse(tt.release)
			if err != nil {
				t.Fatal(err)
			}
			got, err := profiles.FindUnbatched([]byte(tt.source), release, plugins, nil)
			if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestNothingIsUnbatchedIfTheGateIsOff(t *testing.T) {
	defaults := []byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
	release, err := versions.Parse("v1.37.1")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		gates map[string]bool
		want  int
	}{
		{nil, 1}, {map[string]bool{"OpportunisticBatching": true}, 1}, {map[string]bool{"OpportunisticBatching": false},
			0}, {map[string]bool{"GenericWorkload": false}, 1},
	} {
		if found, err := profiles.FindUnbatched(defaults, release, nil, tt.gates); err != nil || len(found) != tt.want {
			t.Errorf("gates %v: %v, %v", tt.gates, found, err)
		}
	}
}

// The documentation of the presets states that pods of these presets are batched.
func TestPresetsWithBatching(t *testing.T) {
	batched := map[string]bool{"binpack": true, "capacity-ratio": true, "throughput": true}
	for _, preset := range profiles.Presets() {
		r := request(t, "v1.37.1")
		r.Preset = preset.Name
		out, err := profiles.Render(r)
		if err != nil {
			t.Fatal(err)
		}
		unbatched, err := profiles.FindUnbatched(out.YAML, r.Release, nil, nil)
		if err != nil || (len(unbatched) == 0) != batched[preset.Name] {
			t.Errorf("%s: %v, %v", preset.Name, unbatched, err)
		}
	}
}

func TestUnbatchedNamesProfileReasonsAndCost(t *testing.T) {
	got := profiles.Unbatched{Profile: "mine",
		Reasons: []string{"plugin Quiet does not sign pods", "extender http://a is called"}}.String()
	if want := "pods of profile mine are not batched: plugin Quiet does not sign pods, extender http://a is called; " +
		profiles.UnbatchedCost; got != want {
		t.Errorf("got %q", got)
	}
}
