package profiles_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/profiles"
)

const (
	v1      = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
	v1beta1 = "apiVersion: kubescheduler.config.k8s.io/v1beta1\nkind: KubeSchedulerConfiguration\n"
	v1beta3 = "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n"
)

func TestRenderRejectsInvalidSources(t *testing.T) {
	cases := []struct {
		name, release, source string
		want, hint            string
	}{
		{"empty", "v1.24.3", "", "f.yaml:1:1: the file is empty",
			"start with the output of `pmk-sched profile show default`, or omit --config"},
		{"only comments", "v1.24.3", "# nothing\n---\n", "f.yaml:1:1: the file is empty", ""},
		{"a scalar", "v1.24.3", "hello\n", `f.yaml:1:1: expected a mapping, got "hello"`, ""},
		{"a list", "v1.24.3", "- a\n", "f.yaml:1:1: expected a mapping, got a list", ""},
		{"two documents", "v1.24.3", v1 + "---\n" + v1,
			"f.yaml:4:1: unexpected second document: a scheduler reads one configuration",
			"keep one document in the file, or deploy each with its own --name"},
		{"a tab", "v1.24.3", v1 + "profiles:\n\t- schedulerName: a\n",
			"f.yaml:4:1: the line is indented with a tab; YAML only allows spaces", "replace each tab with two spaces"},
		{"broken YAML", "v1.24.3", v1 + "profiles:\n  - a: [\n", "invalid YAML", "indentation"},
		{"no apiVersion", "v1.24.3", "kind: KubeSchedulerConfiguration\n", "f.yaml:1:1: apiVersion is missing", ""},
		{"no kind", "v1.24.3", "apiVersion: kubescheduler.config.k8s.io/v1\n", "f.yaml:1:1: kind is missing", ""},
		{"wrong kind", "v1.24.3", "apiVersion: v1\nkind: Pod\n",
			`f.yaml:2:7: unexpected kind "Pod": must be KubeSchedulerConfiguration`, ""},
		{"the ConfigMap", "v1.24.3", "apiVersion: v1\nkind: ConfigMap\ndata: {}\n",
			"f.yaml:2:7: the ConfigMap has no key with a configuration", "put the text under `data:` in a separate file"},
		{"wrong group", "v1.24.3", "apiVersion: componentconfig/v1\nkind: KubeSchedulerConfiguration\n",
			`f.yaml:1:13: unexpected apiVersion "componentconfig/v1": must be in group`, "v1beta3"},
		{"unknown version", "v1.24.3", "apiVersion: kubescheduler.config.k8s.io/v1alpha3\nkind: KubeSchedulerConfiguration\n",
			`f.yaml:1:13: unknown config API "kubescheduler.config.k8s.io/v1alpha3"`, "v1beta3"},
		{"unknown field", "v1.24.3", v1 + "paralelism: 4\n", `f.yaml:3:1: unknown field "paralelism"`,
			`did you mean "parallelism"?`},
		{"field of another config API", "v1.24.3", v1beta3 + "healthzBindAddress: 0.0.0.0:1\n",
			`f.yaml:3:1: field "healthzBindAddress" does not exist in v1beta3`, ""},
		{"duplicate field", "v1.24.3", v1 + "parallelism: 4\nparallelism: 5\n",
			`f.yaml:4:1: duplicate field "parallelism", first set in line 3`, ""},
		{"wrong kind of value", "v1.24.3", v1 + "parallelism: many\n",
			`f.yaml:3:14: parallelism: expected a whole number, got "many"`, ""},
		{"quoted number", "v1.24.3", v1 + "parallelism: \"4\"\n",
			`f.yaml:3:14: parallelism: expected a whole number, got "4"`, ""},
		{"out of range", "v1.24.3", v1 + "percentageOfNodesToScore: 101\n",
			"percentageOfNodesToScore: expected a number from 0 to 100, got 101", ""},
		{"not a duration", "v1.24.3", v1 + "leaderElection: {leaseDuration: 15}\n",
			"f.yaml:3:33: leaderElection.leaseDuration: expected a duration such as 15s, got 15", ""},
		{"list for a mapping", "v1.24.3", v1 + "leaderElection: []\n",
			"f.yaml:3:17: leaderElection: expected a mapping, got a list", ""},
		{"plugin without a name", "v1.24.3", v1 + "profiles:\n- plugins: {score: {enabled: [{weight: 1}]}}\n",
			"f.yaml:4:31: profiles[0].plugins.score.enabled[0] has no name", ""},
		{"unknown argument", "v1.24.3", v1 + "profiles:\n- pluginConfig: [{name: NodeAffinity, args: {x: 1}}]\n",
			`f.yaml:4:46: unknown field "profiles[0].pluginConfig[0].args.x"`, ""},
		{"arguments of another kind", "v1.24.3",
			v1 + "profiles:\n- pluginConfig: [{name: NodeAffinity, args: {kind: VolumeBindingArgs}}]\n",
			`args of plugin NodeAffinity: unexpected kind "VolumeBindingArgs"`, ""},
		{"merge key", "v1.24.3", v1 + "a: &a {x: 1}\nprofiles:\n- <<: *a\n", "f.yaml:5:3: merge keys (<<) are not supported",
			""},
		{"alias of itself", "v1.24.3", v1 + "profiles: &p\n- *p\n", "too many nested or repeated nodes", ""},

		{"plugins at top level with two profiles", "v1.24.3",
			v1 + "profiles:\n- schedulerName: a\n- schedulerName: my-scheduler\nplugins: {}\n",
			`f.yaml:6:1: unknown field "plugins"`, "belongs in a profile"},
		{"weight at the level of two enabled plugins", "v1.24.3",
			v1 +
				"profiles:\n- plugins:\n    score:\n      enabled: [{name: ImageLocality}, {name: NodeAffinity}]\n      weight: " +
				"3\n", `f.yaml:7:7: unknown field "profiles[0].plugins.score.weight"`, "next to the name of a plugin in `enabled`"},

		{"unknown plugin", "v1.24.3", v1 + "profiles:\n- plugins: {score: {enabled: [{name: NodeResourceFit}]}}\n",
			`f.yaml:4:38: plugin "NodeResourceFit" does not exist in v1.24.3`, "did you mean NodeResourcesFit?"},
		{"out-of-tree plugin that is not compiled in", "v1.24.3",
			v1 + "profiles:\n- plugins: {score: {enabled: [{name: Coscheduling}]}}\n",
			`plugin "Coscheduling" does not exist in v1.24.3`, "--with"},
		{"plugin of a later release", "v1.24.3",
			v1 + "profiles:\n- plugins: {multiPoint: {enabled: [{name: SchedulingGates}]}}\n",
			`plugin "SchedulingGates" does not exist in v1.24.3`, ""},
		{"disabled plugin that never existed", "v1.24.3",
			v1 + "profiles:\n- plugins: {score: {disabled: [{name: ImageLocalty}]}}\n", `plugin "ImageLocalty" does not exist`,
			"did you mean ImageLocality?"},
		{"enabled twice", "v1.24.3",
			v1 + "profiles:\n- plugins: {score: {enabled: [{name: NodeAffinity}, {name: NodeAffinity}]}}\n",
			"plugin NodeAffinity is enabled twice under score", ""},
		{"configured twice", "v1.24.3", v1 + "profiles:\n- pluginConfig: [{name: NodeAffinity}, {name: NodeAffinity}]\n",
			"pluginConfig has two entries for NodeAffinity", ""},
		{"removed plugin", "v1.24.3", v1beta1 + "profiles:\n- plugins: {filter: {enabled: [{name: NodeLabel}]}}\n",
			"f.yaml:4:32: plugin NodeLabel does not exist in v1.24.3: it was removed in 1.23", "NodeAffinity"},
		{"two ways to score at once", "v1.24.3",
			v1beta1 + "profiles:\n- plugins: {score: {enabled: [{name: NodeResourcesMostAllocated}]}}\n",
			"NodeResourcesLeastAllocated and NodeResourcesMostAllocated both score in v1beta1",
			"add `- name: NodeResourcesLeastAllocated` to plugins.score.disabled"},
		{"extension point that enables and is not there", "v1.24.3",
			v1 + "profiles:\n- plugins: {preEnqueue: {enabled: [{name: MyPlugin}]}}\n",
			"v1.24.3 has no extension point preEnqueue, where MyPlugin is enabled", ""},
		{"multiPoint of a plugin whose extension points are not known", "v1.22.2",
			v1 + "profiles:\n- plugins: {multiPoint: {enabled: [{name: MyPlugin}]}}\n", "v1beta1 has no multiPoint",
			"each extension point"},
		{"multiPoint of a plugin of a later release", "v1.22.2",
			v1 + "profiles:\n- plugins: {multiPoint: {enabled: [{name: SchedulingGates}]}}\n",
			`plugin "SchedulingGates" does not exist in v1.22.2`, ""},
		{"percentage of several profiles", "v1.24.3",
			v1 + "profiles:\n- {schedulerName: my-scheduler, percentageOfNodesToScore: 5}\n- {schedulerName: b}\n",
			"v1.24.3 does not have profiles.percentageOfNodesToScore", ""},
		{"unknown strategy", "v1.22.2",
			v1 + "profiles:\n- pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: Most}}}]\n",
			`unknown scoring strategy "Most"`, "MostAllocated"},

		{"no profile of the name", "v1.24.3", v1 + "profiles:\n- schedulerName: a\n- schedulerName: b\n",
			`profiles has the name of the deployed scheduler`, "--name"},
		{"two profiles of one name", "v1.24.3",
			v1 + "profiles:\n- schedulerName: my-scheduler\n- schedulerName: my-scheduler\n",
			`f.yaml:5:18: two profiles are named "my-scheduler"`, ""},
		{"a profile without a name", "v1.24.3", v1 + "profiles:\n- schedulerName: my-scheduler\n- {}\n",
			"a profile has no schedulerName, and there are 2 profiles", ""},
		{"the default scheduler's name", "v1.24.3",
			v1 + "profiles:\n- schedulerName: my-scheduler\n- schedulerName: default-scheduler\n",
			"would compete with the default scheduler for pods", ""},
	}
	results := transcript{}
	for _, c := range cases {
		out, err := convert(t, c.release, c.source)
		results.add(c.name, err, nil, nil)
		t.Run(c.name, func(t *testing.T) {
			if err == nil {
				t.Fatalf("no error, but\n%s", out.YAML)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is\n%v\nwant\n%s", err, c.want)
			}
			var wrong *profiles.Error
			if !errors.As(err, &wrong) || !wrong.Invalid() {
				t.Fatalf("%T is not an error of the input", err)
			}
			if !strings.Contains(wrong.Hint(), c.hint) {
				t.Errorf("hint is %q, want %q in it", wrong.Hint(), c.hint)
			}
		})
	}
	results.equal(t, "render-refuses.txt")
}

func TestRenderReportsAllProblems(t *testing.T) {
	_, err := convert(t, "v1.24.3", v1+"parallelism: x\nfoo: 1\nenableProfiling: 3\n")
	var wrong *profiles.Error
	if !errors.As(err, &wrong) || len(wrong.Problems) != 3 {
		t.Errorf("want three problems, got %v", err)
	}
}

func TestRenderRejectsInvalidRequests(t *testing.T) {
	r := request(t, "v1.24.3")
	r.Preset = "binpak"
	_, err := profiles.Render(r)
	var wrong *profiles.Error
	if !errors.As(err, &wrong) || !strings.Contains(err.Error(), `unknown preset "binpak"`) ||
		!strings.Contains(wrong.Hint(), `"binpack"`) {
		t.Errorf("unknown preset: %v", err)
	}
	r.Source = []byte(v1)
	if _, err := profiles.Render(r); !errors.As(err, &wrong) ||
		!strings.Contains(err.Error(), "and a configuration exclude each other") {
		t.Errorf("preset and source: %v", err)
	}
	r = request(t, "v1.24.3")
	r.Source, r.SourceName = make([]byte, 2<<20), "big.yaml"
	if _, err := profiles.Render(r); !errors.As(err, &wrong) ||
		!strings.Contains(err.Error(), "big.yaml: 2097152 bytes exceed the size of a ConfigMap") {
		t.Errorf("big source: %v", err)
	}
}

// Any result is a configuration that reads back unchanged, or an error of the input.
func FuzzRender(f *testing.F) {
	for _, source := range []string{
		v1, v1beta1 + "profiles:\n- plugins: {score: {enabled: [{name: NodeResourcesLeastAllocated, weight: 3}]}}\n",
		v1beta3 + "profiles: [{plugins: {multiPoint: {disabled: [{name: '*'}]}}}]\n", v1 +
			"profiles: [{plugins: {score: {enabled: [{name: ImageLocality,weight}]}}}]\n", "a: &a [*a]\n", "a:\nb\n", "\t",
		"---\n---\n",
	} {
		for minor := uint8(20); minor < 38; minor += 4 {
			f.Add(source, minor)
		}
	}
	f.Fuzz(func(t *testing.T, source string, minor uint8) {
		r := request(t, "v1.24.3")
		r.Release.Minor = 20 + int(minor)%18
		r.Source, r.SourceName = []byte(source), "f.yaml"
		out, err := profiles.Render(r)
		if err != nil {
			var wrong *profiles.Error
			if out != nil || !errors.As(err, &wrong) || len(wrong.Problems) == 0 {
				t.Fatalf("%v is not an error of the input", err)
			}
			return
		}
		r.Source = out.YAML
		again, err := profiles.Render(r)
		if err != nil {
			t.Fatalf("what was rendered is refused: %v\n%s", err, out.YAML)
		}
		if string(again.YAML) != string(out.YAML) {
			t.Fatalf("rendered again it changes:\n%s\n%s", out.YAML, again.YAML)
		}
	})
}
