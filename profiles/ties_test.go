package profiles_test

import (
	"testing"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/golden"
)

// Scores of plugins and of other extenders outweigh the ranks of the added extenders.
func TestSimulationsBreakTies(t *testing.T) {
	ignorable := true
	given := []profiles.Extender{{URLPrefix: "http://given", PrioritizeVerb: "prioritize", Weight: 3},
		{URLPrefix: "http://filters", FilterVerb: "filter", Ignorable: &ignorable}}
	two := []string{"http://127.0.0.1:1/0", "http://127.0.0.1:1/1"}
	cases := map[string]struct {
		source    string
		given     []profiles.Extender
		addresses []string
	}{
		"default": {"", nil, two[:1]},
		"extenders": {oneProfile("") + "extenders: [{urlPrefix: 'http://own', prioritizeVerb: p, weight: 1}, " +
			"{urlPrefix: 'http://own-filter', filterVerb: f}]\n", given, two},
		"weights": {pluginSets("multiPoint: {enabled: [{name: ImageLocality, weight: 6}]}, score: " +
			"{disabled: [{name: NodeAffinity}], enabled: [{name: TaintToleration, weight: 2000}, {name: MyScore, weight: 4}, " +
			"{name: VolumeBinding}]}"), nil, two[:1]},
		"volumes": {pluginSets("multiPoint: {enabled: [{name: VolumeBinding, weight: 5}]}, " +
			"score: {disabled: [{name: NodeAffinity}]}"), nil, two[:1]},
		"volumes-disabled": {pluginSets("score: {disabled: [{name: VolumeBinding}]}"), nil, two[:1]},
		"profiles": {v1 + "profiles: [{schedulerName: other, plugins: " +
			"{score: {enabled: [{name: ImageLocality, weight: 2}]}}}, {schedulerName: my-scheduler, " +
			"plugins: {multiPoint: {enabled: [{name: MyScore, weight: 4}]}}}]\n", nil, two},
		"nothing": {"", nil, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := request(t, "v1.29.2")
			r.Plugins, r.Enable = []string{"MyScore"}, []profiles.Plugin{{Name: costAware, Points: []string{"score"}}}
			if tc.source != "" {
				r.Source, r.SourceName = []byte(tc.source), "f.yaml"
			}
			made, err := profiles.NewTunable(r)
			if err != nil {
				t.Fatal(err)
			}
			before := yamlOf(t, made)
			text, err := made.BreakTies(tc.given, tc.addresses, "rank")
			if err != nil {
				t.Fatal(err)
			}
			golden.Equal(t, "testdata/ties/"+name+".yaml", text)
			if yamlOf(t, made) != before {
				t.Error("the configuration itself changed")
			}
		})
	}
}

// NodeResourcesFit scores from 1.22 on.
func TestSimulationsOfOldReleasesBreakTies(t *testing.T) {
	for _, release := range []string{"v1.21.14", "v1.22.17"} {
		made, err := profiles.NewTunable(request(t, release))
		if err != nil {
			t.Fatal(err)
		}
		text, err := made.BreakTies(nil, []string{"http://127.0.0.1:1/0"}, "rank")
		if err != nil {
			t.Fatal(err)
		}
		golden.Equal(t, "testdata/ties/"+release+".yaml", text)
	}
}
