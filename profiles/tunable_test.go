package profiles_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/golden"
)

// Plugins are enabled in the configuration, and the profile of the scheduler is the one to change.
func TestTunableConfigurations(t *testing.T) {
	cases := map[string]struct{ release, preset, source string }{
		"preset": {"v1.29.2", "binpack", ""},
		"second-profile": {"v1.29.2", "", v1 + "profiles: [{schedulerName: other}, " +
			"{schedulerName: my-scheduler, percentageOfNodesToScore: 5}]\n"},
		"other-name":    {"v1.29.2", "", v1 + "profiles: [{schedulerName: other}]\n"},
		"policy":        {"v1.20.15", "", "apiVersion: v1\nkind: Policy\npredicates: [{name: PodFitsResources}]\n"},
		"v1beta2":       {"v1.22.7", "", strings.Replace(v1, "/v1\n", "/v1beta2\n", 1) + "percentageOfNodesToScore: 5\n"},
		"names-plugins": {"v1.29.2", "", pluginSets("score: {enabled: [{name: CostAware, weight: 2}]}")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := request(t, tc.release)
			r.Preset, r.Enable = tc.preset, []profiles.Plugin{{Name: costAware, Points: []string{"preScore", "score"}}}
			if tc.source != "" {
				r.Source, r.SourceName = []byte(tc.source), "f.yaml"
			}
			made, err := profiles.NewTunable(r)
			if err != nil {
				t.Fatal(err)
			}
			made.Set(profiles.SettingNUMA, "MostAllocated") // it is in the profile of the scheduler
			golden.Equal(t, "testdata/tunable/"+name+".yaml", yamlOf(t, made))
		})
	}
}

// The name of a compiled-in plugin may resemble the name of an in-tree plugin.
func TestTunableConfigurationNamesACompiledInPlugin(t *testing.T) {
	const name = "ImageLocalityX"
	made := tunable(t, pluginSets("score: {enabled: [{name: "+name+", weight: 2}]}"),
		profiles.Plugin{Name: name, Points: []string{"score"}})
	if got := made.Get(profiles.PrefixWeight + name); got != "2" {
		t.Errorf("got weight %s, want 2", got)
	}
}

func TestConfigurationsThatAreNotTunable(t *testing.T) {
	cases := map[string]struct {
		source, preset string
		plugin         profiles.Plugin
		want           string
	}{
		"an unknown field":  {v1 + "unknown: 1\n", "", profiles.Plugin{}, "f.yaml:3:1"},
		"an unknown preset": {"", "none", profiles.Plugin{}, "none"},
		"a plugin at another extension point": {v1, "", profiles.Plugin{Name: costAware, Points: []string{"score"},
			Enable: []string{"filter"}}, `it does not implement the extension point "filter"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := request(t, "v1.29.2")
			r.Preset = tc.preset
			if tc.source != "" {
				r.Source, r.SourceName = []byte(tc.source), "f.yaml"
			}
			if tc.plugin.Name != "" {
				r.Enable = []profiles.Plugin{tc.plugin}
			}
			made, err := profiles.NewTunable(r)
			if err == nil || !strings.Contains(err.Error(), tc.want) || made != nil {
				t.Errorf("got %v and %v, want %q", made, err, tc.want)
			}
		})
	}
}

func TestNUMAAwareIsEnabled(t *testing.T) {
	numa := profiles.Plugin{Name: numaAware, Points: []string{"filter", "score"}}
	cases := map[string]struct {
		source  string
		plugins []profiles.Plugin
		want    bool
	}{
		"compiled in":                  {"", []profiles.Plugin{numa}, true},
		"not compiled in":              {"", nil, false},
		"enabled by the configuration": {pluginSets("filter: {enabled: [{name: NUMAAware}]}"), []profiles.Plugin{numa}, true},
		"disabled by the configuration": {pluginSets("multiPoint: {disabled: [{name: NUMAAware}]}"), []profiles.Plugin{numa},
			false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tunable(t, tc.source, tc.plugins...).HasNUMA(); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

// The preset that a scheduler runs, and the same preset as a configuration to change, run the same
// plugins with the same weights.
func TestTunablePresetsRunTheSamePlugins(t *testing.T) {
	for _, release := range []string{"v1.20.15", "v1.21.14", "v1.22.17", "v1.24.3", "v1.29.2", "v1.36.3"} {
		for _, preset := range profiles.Presets() {
			r := request(t, release)
			r.Preset = preset.Name
			made, err := profiles.NewTunable(r)
			if err != nil {
				t.Fatal(err)
			}
			var running [2][]profiles.Running
			source := request(t, release)
			source.Source, source.SourceName = []byte(yamlOf(t, made)), "f.yaml"
			for i, one := range []profiles.Request{r, source} {
				rendered, err := profiles.Render(one)
				if err != nil {
					t.Fatal(err)
				}
				if running[i], err = profiles.RunningPlugins(rendered.YAML, r.Release, nil); err != nil {
					t.Fatal(err)
				}
				delete(running[i][0].Points["score"], "NodePreferAvoidPods") // v1 does not have it
			}
			if diff := cmp.Diff(running[0], running[1]); diff != "" {
				t.Errorf("%s, %s (-preset +configuration):\n%s", release, preset.Name, diff)
			}
		}
	}
}
