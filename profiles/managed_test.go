package profiles_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/golden"
)

func TestSettingsOfManagedSchedulers(t *testing.T) {
	score := profiles.Plugin{Name: costAware, Points: []string{"score"}}
	cases := map[string]struct {
		source  string
		plugins []profiles.Plugin
	}{
		"default":   {"", nil},
		"resources": {fitArgs(resources), nil},
		"ratio":     {ratio("{utilization: 0, score: 10}, {utilization: 100, score: 0}"), nil},
		"weights": {pluginSets("score: {disabled: [{name: ImageLocality}], enabled: [{name: NodeAffinity, weight: 9}, " +
			"{name: TaintToleration, weight: 3}]}"), nil},
		"arguments": {oneProfile("  pluginConfig:\n  - {name: InterPodAffinity, args: {hardPodAffinityWeight: 5}}\n" +
			"  - {name: CostAware, args: {a: 1}}\n  - {name: PodTopologySpread, args: {defaultingType: List}}\n"),
			[]profiles.Plugin{score}},
		"extender":             {oneProfile("") + "extenders: [{urlPrefix: 'http://a', filterVerb: f}]\n", nil},
		"weight-at-multipoint": {pluginSets("multiPoint: {enabled: [{name: VolumeBinding, weight: 5}]}"), nil},
		"percentage":           {oneProfile("") + "percentageOfNodesToScore: 7\n", nil},
		"profile-percentage":   {oneProfile("  percentageOfNodesToScore: 9\n"), nil},
		"foreign": {pluginSets("queueSort: {disabled: [{name: '*'}], enabled: [{name: Sorts}]}, multiPoint: "+
			"{enabled: [{name: Sorts}, {name: NodePorts}]}, score: {enabled: [{name: CostAware, weight: 2}]}") +
			"extenders: [{urlPrefix: 'http://a', filterVerb: f}, {urlPrefix: 'http://b', filterVerb: f}]\n",
			[]profiles.Plugin{score, {Name: "Sorts", Points: []string{"queueSort"}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			made := tunable(t, tc.source, tc.plugins...)
			before := yamlOf(t, made)
			eks, err := made.ForEKS()
			if err != nil {
				t.Fatal(err)
			}
			aks, err := made.ForAKS()
			if err != nil {
				t.Fatal(err)
			}
			if yamlOf(t, made) != before {
				t.Error("the configuration itself changed")
			}
			text := fmt.Sprintf("# EKS\n%s\n%s\n# AKS\n%s\n%s", strings.Join(eks.Lost, "\n"), eks.Text,
				strings.Join(aks.Lost, "\n"), aks.Text)
			golden.Equal(t, "testdata/managed/"+name+".txt", text)
		})
	}
}

// A list without elements is [] in JSON.
func TestNothingIsLost(t *testing.T) {
	made := tunable(t, "")
	eks, err := made.ForEKS()
	if err != nil || eks.Lost == nil || len(eks.Lost) > 0 {
		t.Errorf("EKS: got %v and %v", eks.Lost, err)
	}
	aks, err := made.ForAKS()
	if err != nil || aks.Lost == nil || len(aks.Lost) > 0 {
		t.Errorf("AKS: got %v and %v", aks.Lost, err)
	}
}
