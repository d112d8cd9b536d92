package profiles_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/golden"
)

// tunable returns a configuration for v1.29.2 to change. Without a source it is the default preset.
func tunable(t *testing.T, source string, plugins ...profiles.Plugin) *profiles.Tunable {
	t.Helper()
	r := request(t, "v1.29.2")
	if source != "" {
		r.Source, r.SourceName = []byte(source), "f.yaml"
	}
	r.Enable = plugins
	made, err := profiles.NewTunable(r)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// oneProfile returns a v1 configuration with one profile.
func oneProfile(fields string) string {
	return v1 + "profiles:\n- schedulerName: my-scheduler\n" + fields
}

func pluginConfig(plugin, args string) string {
	return oneProfile("  pluginConfig: [{name: " + plugin + ", args: " + args + "}]\n")
}

func fitArgs(strategy string) string {
	return pluginConfig("NodeResourcesFit", "{scoringStrategy: "+strategy+"}")
}

func ratio(shape string) string {
	return fitArgs("{type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: [" + shape + "]}}")
}

func spreadArgs(args string) string { return pluginConfig("PodTopologySpread", args) }

func pluginSets(sets string) string { return oneProfile("  plugins: {" + sets + "}\n") }

const (
	peak70    = "{utilization: 0, score: 0}, {utilization: 70, score: 10}, {utilization: 100, score: 2}"
	resources = "{type: MostAllocated, resources: [{name: memory, weight: 3}, {name: cpu}]}"
	costAware = "CostAware"
	numaAware = "NUMAAware"
)

func TestSettingsOfAConfiguration(t *testing.T) {
	const (
		cpu, memory = profiles.PrefixResource + "cpu", profiles.PrefixResource + "memory"
		images      = profiles.PrefixWeight + "ImageLocality"
		taints      = profiles.PrefixWeight + "TaintToleration"
		even        = "{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway}, " +
			"{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway}"
		both = "multiPoint: {enabled: [{name: ImageLocality, weight: 6}]}, "
	)
	cases := map[string]struct{ source, setting, want string }{
		"the default strategy": {"", profiles.SettingStrategy, "LeastAllocated"},
		"a strategy":           {fitArgs("{type: MostAllocated}"), profiles.SettingStrategy, "MostAllocated"},
		"a shape with a peak":  {ratio(peak70), profiles.SettingStrategy, "RequestedToCapacityRatio 70"},
		"a shape in another order of fields": {
			ratio("{score: 0, utilization: 0}, {score: 10, utilization: 50}, {score: 2, utilization: 100}"),
			profiles.SettingStrategy, "RequestedToCapacityRatio 50"},
		"a shape with another score": {
			ratio("{utilization: 0, score: 1}, {utilization: 70, score: 10}, {utilization: 100, score: 2}"),
			profiles.SettingStrategy, profiles.ValueOther},
		"a shape with one point": {ratio("{utilization: 70, score: 10}"), profiles.SettingStrategy, profiles.ValueOther},
		"a shape with two points": {ratio("{utilization: 0, score: 0}, {utilization: 100, score: 10}"),
			profiles.SettingStrategy, profiles.ValueOther},
		"a shape with four points": {ratio("{utilization: 0, score: 0}, {utilization: 70, score: 10}, " +
			"{utilization: 90, score: 5}, {utilization: 100, score: 2}"), profiles.SettingStrategy, profiles.ValueOther},

		"default resource cpu":          {"", cpu, "1"},
		"default resource memory":       {"", memory, "1"},
		"no default resource":           {"", profiles.PrefixResource + "example.com/gpu", "0"},
		"an empty list of resources":    {fitArgs("{type: MostAllocated, resources: []}"), memory, "1"},
		"a resource with a weight":      {fitArgs("{type: MostAllocated, resources: [{name: cpu, weight: 3}]}"), cpu, "3"},
		"a resource without a weight":   {fitArgs(resources), cpu, "1"},
		"a resource that is not listed": {fitArgs("{type: MostAllocated, resources: [{name: cpu, weight: 3}]}"), memory, "0"},

		"the default percentage":      {"", profiles.SettingPercentage, "0"},
		"a percentage":                {v1 + "percentageOfNodesToScore: 7\n", profiles.SettingPercentage, "7"},
		"the percentage of a profile": {oneProfile("  percentageOfNodesToScore: 9\n"), profiles.SettingPercentage, "9"},
		"an empty percentage of a profile": {oneProfile("  percentageOfNodesToScore: null\n") +
			"percentageOfNodesToScore: 7\n", profiles.SettingPercentage, "7"},

		"the default strategy of NUMAAware": {"", profiles.SettingNUMA, "LeastAllocated"},
		"a strategy of NUMAAware": {pluginConfig(numaAware, "{strategy: MostAllocated}"), profiles.SettingNUMA,
			"MostAllocated"},

		"default constraints":           {"", profiles.SettingConstraints, profiles.ConstraintsSystem},
		"constraints of the release":    {spreadArgs("{defaultingType: System}"), profiles.SettingConstraints, "System"},
		"arguments without constraints": {spreadArgs("{}"), profiles.SettingConstraints, profiles.ConstraintsSystem},
		"arguments that are null":       {spreadArgs("null"), profiles.SettingConstraints, profiles.ConstraintsSystem},
		"no constraints":                {spreadArgs("{defaultingType: List}"), profiles.SettingConstraints, "none"},
		"constraints over zones and hosts": {spreadArgs("{defaultingType: List, defaultConstraints: [" + even + "]}"),
			profiles.SettingConstraints, profiles.ConstraintsEven},
		"constraints of typed arguments": {spreadArgs("{apiVersion: kubescheduler.config.k8s.io/v1, " +
			"kind: PodTopologySpreadArgs, defaultingType: List, defaultConstraints: [" + even + "]}"),
			profiles.SettingConstraints, profiles.ConstraintsEven},
		"one constraint": {spreadArgs("{defaultingType: List, defaultConstraints: [{maxSkew: 1, " +
			"topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway}]}"), profiles.SettingConstraints,
			profiles.ValueOther},
		"constraints with another skew": {spreadArgs("{defaultingType: List, defaultConstraints: [" +
			strings.Replace(even, "maxSkew: 1", "maxSkew: 2", 1) + "]}"), profiles.SettingConstraints, profiles.ValueOther},

		"a default weight":                {"", taints, "3"},
		"a weight at score":               {pluginSets("score: {enabled: [{name: ImageLocality, weight: 8}]}"), images, "8"},
		"a plugin at score has weight 1":  {pluginSets("score: {enabled: [{name: TaintToleration}]}"), taints, "1"},
		"a weight at multiPoint":          {pluginSets(both), images, "6"},
		"a weight of 1 at multiPoint":     {pluginSets("multiPoint: {enabled: [{name: TaintToleration}]}"), taints, "1"},
		"a plugin disabled at score":      {pluginSets("score: {disabled: [{name: ImageLocality}]}"), images, "0"},
		"all plugins disabled at score":   {pluginSets("score: {disabled: [{name: '*'}]}"), images, "0"},
		"a plugin disabled at multiPoint": {pluginSets("multiPoint: {disabled: [{name: ImageLocality}]}"), images, "0"},
		"a plugin enabled after all are disabled": {pluginSets("score: {disabled: [{name: '*'}], " +
			"enabled: [{name: ImageLocality, weight: 4}]}"), images, "4"},
		"score before multiPoint": {pluginSets(both + "score: {enabled: [{name: ImageLocality, weight: 8}]}"), images, "8"},
		"disabled at score before multiPoint": {pluginSets(both + "score: {disabled: [{name: ImageLocality}]}"), images,
			"0"},
		"a plugin that does not score": {"", profiles.PrefixWeight + "NodePorts", "0"},
		"a compiled-in plugin":         {"", profiles.PrefixWeight + costAware, "7"},
		"an unknown plugin":            {"", profiles.PrefixWeight + "Unknown", "0"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			made := tunable(t, tc.source, profiles.Plugin{Name: costAware, Points: []string{"score"}, Weight: 7},
				profiles.Plugin{Name: numaAware, Points: []string{"filter"}})
			if got := made.Get(tc.setting); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.setting, got, tc.want)
			}
		})
	}
}

// Each case changes settings one after the other, and each setting then has its value.
func TestChangedSettings(t *testing.T) {
	cases := map[string]struct {
		source  string
		changes [][2]string
	}{
		"strategy":   {"", [][2]string{{profiles.SettingStrategy, "MostAllocated"}}},
		"ratio":      {"", [][2]string{{profiles.SettingStrategy, profiles.StrategyRatio + "85"}}},
		"ratio-left": {ratio(peak70), [][2]string{{profiles.SettingStrategy, "LeastAllocated"}}},
		"strategy-keeps-resources": {fitArgs(strings.Replace(resources, "Most", "Least", 1)),
			[][2]string{{profiles.SettingStrategy, "MostAllocated"}}},
		"strategy-keeps-one-resource": {fitArgs("{type: LeastAllocated, resources: [{name: cpu, weight: 3}]}"),
			[][2]string{{profiles.SettingStrategy, "MostAllocated"}}},
		"resources": {"", [][2]string{
			{profiles.PrefixResource + "memory", "4"}, {profiles.PrefixResource + "aaa.com/gpu", "2"},
		}},
		"resource-removed": {fitArgs(resources),
			[][2]string{{profiles.PrefixResource + "memory", "0"}}},
		"percentage": {"", [][2]string{{profiles.SettingPercentage, "30"}}},
		"profile-percentage": {oneProfile("  percentageOfNodesToScore: 9\n"),
			[][2]string{{profiles.SettingPercentage, "30"}}},
		"numa":             {"", [][2]string{{profiles.SettingNUMA, "MostAllocated"}}},
		"constraints-even": {"", [][2]string{{profiles.SettingConstraints, profiles.ConstraintsEven}}},
		"constraints-none": {"", [][2]string{{profiles.SettingConstraints, profiles.ConstraintsNone}}},
		"constraints-system": {spreadArgs("{defaultingType: List, defaultConstraints: [{maxSkew: 1, topologyKey: rack, " +
			"whenUnsatisfiable: ScheduleAnyway}]}"), [][2]string{{profiles.SettingConstraints, profiles.ConstraintsSystem}}},
		"weight": {"", [][2]string{{profiles.PrefixWeight + "ImageLocality", "5"}}},
		"weight-replaced": {
			pluginSets("score: {enabled: [{name: NodeAffinity, weight: 2}, {name: ImageLocality, weight: 8}]}"),
			[][2]string{{profiles.PrefixWeight + "NodeAffinity", "5"}},
		},
		"weight-1": {"", [][2]string{{profiles.PrefixWeight + "TaintToleration", "1"}}},
		"weight-0": {"", [][2]string{{profiles.PrefixWeight + "ImageLocality", "0"}}},
		"weight-0-of-an-enabled-plugin": {pluginSets("score: {enabled: [{name: ImageLocality, weight: 8}]}"),
			[][2]string{{profiles.PrefixWeight + "ImageLocality", "0"}}},
		"weight-of-a-disabled-plugin": {pluginSets("score: {disabled: [{name: ImageLocality}]}"),
			[][2]string{{profiles.PrefixWeight + "ImageLocality", "5"}}},
		"weight-0-if-all-are-disabled": {pluginSets("score: {disabled: [{name: '*'}], " +
			"enabled: [{name: ImageLocality, weight: 8}]}"), [][2]string{{profiles.PrefixWeight + "ImageLocality", "0"}}},
		"weight-0-of-the-only-plugin-at-score": {pluginSets("multiPoint: {disabled: [{name: ImageLocality}]}, " +
			"score: {enabled: [{name: ImageLocality, weight: 8}]}"),
			[][2]string{{profiles.PrefixWeight + "ImageLocality", "0"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			made := tunable(t, tc.source)
			for _, change := range tc.changes {
				made.Set(change[0], change[1])
			}
			for _, change := range tc.changes {
				if got := made.Get(change[0]); got != change[1] {
					t.Errorf("%s: got %q, want %q", change[0], got, change[1])
				}
			}
			golden.Equal(t, "testdata/tuning/"+name+".yaml", yamlOf(t, made))
		})
	}
}

func yamlOf(t *testing.T, made *profiles.Tunable) string {
	t.Helper()
	text, err := made.YAML()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestEqualAndOtherValuesChangeNothing(t *testing.T) {
	shape := ratio("{utilization: 0, score: 10}, {utilization: 100, score: 0}")
	cases := map[string]struct{ source, setting, value string }{
		"the value that it has":       {"", profiles.SettingStrategy, "LeastAllocated"},
		"the default weight":          {"", profiles.PrefixWeight + "TaintToleration", "3"},
		"another shape":               {shape, profiles.SettingStrategy, profiles.ValueOther},
		"another value":               {"", profiles.SettingConstraints, profiles.ValueOther},
		"the default of the resource": {"", profiles.PrefixResource + "cpu", "1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			made := tunable(t, tc.source)
			before := yamlOf(t, made)
			made.Set(tc.setting, tc.value)
			if diff := cmp.Diff(before, yamlOf(t, made)); diff != "" {
				t.Errorf("(-before +after):\n%s", diff)
			}
		})
	}
}

func TestACopyIsIndependent(t *testing.T) {
	made := tunable(t, v1+"profiles: [{schedulerName: other}, {schedulerName: my-scheduler}]\n")
	before := yamlOf(t, made)
	changed := made.Copy()
	changed.Set(profiles.SettingStrategy, "MostAllocated")
	changed.Set(profiles.SettingPercentage, "30")
	if diff := cmp.Diff(before, yamlOf(t, made)); diff != "" {
		t.Errorf("the original changed (-before +after):\n%s", diff)
	}
	golden.Equal(t, "testdata/tuning/copy.yaml", yamlOf(t, changed))
}

func TestPolicyPlugins(t *testing.T) {
	made := tunable(t, "", profiles.Plugin{Name: costAware, Points: []string{"preScore", "score"}},
		profiles.Plugin{Name: "Filters", Points: []string{"filter"}},
		profiles.Plugin{Name: "OnlyFilters", Points: []string{"filter", "score"}, Enable: []string{"filter"}},
		profiles.Plugin{Name: "OnlyScores", Points: []string{"filter", "score"}, Enable: []string{"score"}})
	want := []string{"NodeResourcesFit", "NodeResourcesBalancedAllocation", "PodTopologySpread", "ImageLocality",
		costAware, "OnlyScores"}
	if got := made.PolicyPlugins(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
