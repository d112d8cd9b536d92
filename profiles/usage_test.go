package profiles_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

func TestUsageReadsWhatKnownProblemsDependOn(t *testing.T) {
	const v1 = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
	const v1beta1 = "apiVersion: kubescheduler.config.k8s.io/v1beta1\nkind: KubeSchedulerConfiguration\n"
	plugins := func(api, text string) string { return api + "profiles:\n- plugins: " + text + "\n" }
	for name, tt := range map[string]struct {
		source, release string
		want            versions.Usage
		runs, lacks     []string
	}{
		"defaults": {source: v1, release: "v1.27.3",
			runs: []string{"NodeAffinity", "DefaultPreemption", "SchedulingGates", "PodTopologySpread"}},
		"defaults of an older config API": {
			source: v1beta1, release: "v1.20.15", runs: []string{"NodeResourcesLeastAllocated",
				"DefaultPreemption"}, lacks: []string{"SchedulingGates"},
		},
		"a plugin that is disabled everywhere": {
			source: plugins(v1, "{multiPoint: {disabled: [{name: NodeAffinity}]}}"), release: "v1.27.3",
			lacks: []string{"NodeAffinity"},
		},
		"a plugin that is disabled at one point": {
			source: plugins(v1, "{filter: {disabled: [{name: NodeAffinity}]}}"), release: "v1.27.3",
			runs: []string{"NodeAffinity"},
		},
		"all but one": {
			source: plugins(v1,
				"{multiPoint: {disabled: [{name: '*'}], enabled: [{name: NodeName}, {name: PrioritySort}, {name: DefaultBinder}]}}"), release: "v1.27.3",
			runs: []string{"NodeName"}, lacks: []string{"NodeAffinity"},
		},
		"a second profile": {
			source: v1 +
				"profiles:\n- schedulerName: a\n  plugins: {multiPoint: {disabled: [{name: NodeAffinity}]}}\n- schedulerName: b\n",
			release: "v1.27.3",
			runs:    []string{"NodeAffinity"},
		},
		"a compiled-in plugin at a point": {source: plugins(v1, "{permit: {enabled: [{name: Mine}]}}"), release: "v1.27.3",
			want: versions.Usage{OutOfTree: true}},
		"a compiled-in plugin everywhere": {source: plugins(v1, "{multiPoint: {enabled: [{name: Mine}]}}"),
			release: "v1.27.3", want: versions.Usage{OutOfTree: true}},
		"an extender that gets names": {source: v1 +
			"extenders: [{urlPrefix: 'http://a', filterVerb: f, nodeCacheCapable: true}]\n", release: "v1.33.13",
			want: versions.Usage{Extenders: true}},
		"an extender that gets nodes": {source: v1 + "extenders: [{urlPrefix: 'http://a', filterVerb: f}]\n",
			release: "v1.33.13", want: versions.Usage{Extenders: true, WholeNodes: true}},
		"an extender that only prioritizes": {source: v1 +
			"extenders: [{urlPrefix: 'http://a', prioritizeVerb: p, weight: 1}]\n", release: "v1.33.13",
			want: versions.Usage{Extenders: true}},
		"a Policy": {
			source: "apiVersion: v1\nkind: Policy\nextenders: [{urlPrefix: 'http://a', filterVerb: f}]\n", release: "v1.20.15",
			want: versions.Usage{Extenders: true, WholeNodes: true}},
		"three overrides": {
			source: plugins(v1,
				"{score: {enabled: [{name: NodeAffinity, weight: 5}, {name: ImageLocality, weight: 2}, {name: TaintToleration, "+
					"weight: 9}]}}"), release: "v1.27.3",
			want: versions.Usage{Overrides: true},
		},
		"three overrides that are disabled before": {
			source: plugins(v1,
				"{score: {disabled: [{name: NodeAffinity}, {name: ImageLocality}, {name: TaintToleration}], enabled: [{name: "+
					"NodeAffinity}, {name: ImageLocality}, {name: TaintToleration}]}}"), release: "v1.27.3",
		},
		"two overrides": {source: plugins(v1,
			"{score: {enabled: [{name: NodeAffinity}, {name: ImageLocality}]}}"), release: "v1.27.3"},
		"two overrides around another": {source: plugins(v1,
			"{score: {enabled: [{name: NodeAffinity}, {name: Mine}, {name: ImageLocality}]}}"), release: "v1.27.3",
			want: versions.Usage{Overrides: true, OutOfTree: true}},
		"two overrides before another": {source: plugins(v1,
			"{score: {enabled: [{name: NodeAffinity}, {name: ImageLocality}, {name: Mine}]}}"), release: "v1.27.3",
			want: versions.Usage{OutOfTree: true}},
		"score plugins disabled": {source: plugins(v1,
			"{score: {disabled: [{name: '*'}], enabled: [{name: ImageLocality}]}}"), release: "v1.27.3",
			want: versions.Usage{FewScores: true}},
		"score and preScore plugins are off": {source: plugins(v1,
			"{score: {disabled: [{name: '*'}]}, preScore: {disabled: [{name: '*'}]}}"), release: "v1.27.3"},
	} {
		t.Run(name, func(t *testing.T) {
			release, err := versions.Parse(tt.release)
			if err != nil {
				t.Fatal(err)
			}
			got, err := profiles.Usage([]byte(tt.source), release)
			if err != nil {
				t.Fatal(err)
			}
			for _, plugin := range tt.runs {
				if !slices.Contains(got.Plugins, plugin) {
					t.Errorf("%s does not run: %v", plugin, got.Plugins)
				}
			}
			for _, plugin := range tt.lacks {
				if slices.Contains(got.Plugins, plugin) {
					t.Errorf("%s runs", plugin)
				}
			}
			if got.Extenders != tt.want.Extenders || got.WholeNodes != tt.want.WholeNodes ||
				got.Overrides != tt.want.Overrides ||
				got.FewScores != tt.want.FewScores || got.OutOfTree != tt.want.OutOfTree {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestUsageOfWhatIsNoConfigurationIsAnError(t *testing.T) {
	if _, err := profiles.Usage([]byte("kind: Pod\napiVersion: v1\n"),
		versions.Release{Major: 1, Minor: 27}); err == nil || !strings.Contains(err.Error(), "Pod") {
		t.Errorf("error %v", err)
	}
}
