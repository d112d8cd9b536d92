package profiles_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/golden"
	"github.com/pmk-sched/pmk-sched/versions"
)

// convertTo converts a source to a config API, for a release if one is named: "v1beta3@v1.24.3",
// "v1", "v1.24.3".
func convertTo(t *testing.T, to, source string, lossy bool) (*profiles.Converted, error) {
	t.Helper()
	name, branch, found := strings.Cut(to, "@")
	api, release, err := profiles.Target(name)
	if err != nil {
		t.Fatal(err)
	}
	if found {
		if release, err = versions.Parse(branch); err != nil {
			t.Fatal(err)
		}
	}
	return profiles.Convert(profiles.ConvertRequest{API: api, Release: release, Source: []byte(source),
		SourceName: "f.yaml", Plugins: []string{extraName}, Lossy: lossy})
}

// A line `# to: targets` in each source has its targets; "lossy:" before one allows losses. JSON
// sources have it in a separate file.
func TestConvertMatchesGoldenFiles(t *testing.T) {
	inputs, err := filepath.Glob("testdata/own/*.in.*")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no inputs: %v", err)
	}
	targets := regexp.MustCompile(`(?m)^ *# to: (.*)$`)
	for _, input := range inputs {
		source, err := os.ReadFile(input)
		if err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(input, ".in.")
		found := targets.FindSubmatch(source)
		if beside, err := os.ReadFile(name + ".targets"); err == nil {
			found = targets.FindSubmatch(beside)
		}
		if found == nil {
			t.Fatalf("%s has no line `# to: targets`", input)
		}
		for _, target := range strings.Fields(string(found[1])) {
			to, lossy := strings.CutPrefix(target, "lossy:")
			t.Run(filepath.Base(name)+" to "+target, func(t *testing.T) {
				out, err := convertTo(t, to, string(source), lossy)
				if err != nil {
					t.Fatal(err)
				}
				equalConverted(t, name+"-"+strings.ReplaceAll(to, "@", "-")+".yaml", out)
				again, err := convertTo(t, to, string(out.YAML), false)
				if err != nil {
					t.Fatalf("the result cannot be converted: %v", err)
				}
				if diff := cmp.Diff(string(out.YAML), string(again.YAML)); diff != "" {
					t.Errorf("converted again it changes (-once +twice):\n%s", diff)
				}
			})
		}
	}
}

// equalConverted compares a converted configuration and its notes with a file.
func equalConverted(t *testing.T, file string, out *profiles.Converted) {
	t.Helper()
	var text bytes.Buffer
	for _, note := range out.Notes {
		kind := ""
		if note.Loss {
			kind = "lost: "
		}
		fmt.Fprintf(&text, "# %s%d:%d %s\n", kind, note.Line, note.Column, note.Message)
	}
	text.Write(out.YAML)
	golden.Equal(t, file, text.Bytes())
}

const (
	v1beta2 = "apiVersion: kubescheduler.config.k8s.io/v1beta2\nkind: KubeSchedulerConfiguration\n"
	policy  = "apiVersion: v1\nkind: Policy\n"
)

// A setting that cannot be converted is an error with its position, and a marked note if losses are
// allowed.
func TestConvertReportsLosses(t *testing.T) {
	results := transcript{}
	for _, c := range []struct{ name, to, source, want string }{
		{"plugin without a successor", "v1",
			v1beta1 + "profiles:\n- plugins: {filter: {enabled: [{name: ServiceAffinity}]}}\n",
			"4:32: plugin ServiceAffinity does not exist in v1.37.1"},
		{"priority without a successor", "v1", policy + "priorities:\n- {name: NodePreferAvoidPodsPriority, weight: 10000}\n",
			"4:3: plugin NodePreferAvoidPods does not exist"},
		{"alwaysCheckAllPredicates", "v1beta1", policy + "alwaysCheckAllPredicates: true\n",
			"3:1: alwaysCheckAllPredicates has no successor: filters stop at the first that rejects a node"},
		{"two that score by resources", "v1",
			policy + "priorities:\n- {name: LeastRequestedPriority, weight: 2}\n- {name: MostRequestedPriority, weight: 3}\n",
			"5:3: NodeResourcesLeastAllocated and NodeResourcesMostAllocated both score"},
		{"labels that were scored", "v1",
			policy + "priorities:\n- {name: a, weight: 2, argument: {labelPreference: {label: x}}}\n",
			"4:3: plugin NodeLabel does not exist"},
		{"preEnqueue where it is ignored", "v1beta3",
			v1 + "profiles:\n- plugins: {preEnqueue: {enabled: [{name: MyPlugin}]}}\n",
			"4:36: v1beta3 accepts and ignores preEnqueue"},
		{"preEnqueue before there was any", "v1beta3@v1.24.3",
			v1 + "profiles:\n- plugins: {preEnqueue: {enabled: [{name: MyPlugin}]}}\n",
			"4:13: v1.24.3 has no extension point preEnqueue"},
		{"gates that cannot be off", "v1beta2",
			v1 + "profiles:\n- plugins: {preEnqueue: {disabled: [{name: SchedulingGates}]}}\n",
			"4:37: SchedulingGates cannot be disabled in v1beta2"},
		{"multiPoint of a foreign plugin", "v1beta2",
			v1 + "profiles:\n- plugins: {multiPoint: {enabled: [{name: MyPlugin}]}}\n", "v1beta2 has no multiPoint"},
		{"plugin of a later release", "v1beta3",
			v1 + "profiles:\n- plugins: {multiPoint: {enabled: [{name: NodeDeclaredFeatures}]}}\n",
			`plugin "NodeDeclaredFeatures" does not exist in v1.28.15|plugin NodeDeclaredFeatures does not exist in v1.28.15`},
		{"percentage of several profiles", "v1beta3",
			v1 + "profiles:\n- {schedulerName: a, percentageOfNodesToScore: 5}\n- {schedulerName: b}\n",
			"4:22: v1.28.15 does not have profiles.percentageOfNodesToScore"},
		{"constraint of a later release", "v1beta1",
			v1 +
				"profiles:\n- pluginConfig: [{name: PodTopologySpread, args: {defaultingType: List, defaultConstraints: " +
				"[{maxSkew: 1, minDomains: 2, topologyKey: a, whenUnsatisfiable: ScheduleAnyway}]}}]\n",
			"v1.22.2 does not have args of PodTopologySpread.defaultConstraints.minDomains"},
		{"arguments of a later release", "v1beta1@v1.21.3",
			v1 +
				"profiles:\n- pluginConfig: [{name: NodeResourcesBalancedAllocation, args: {resources: [{name: cpu, weight: " +
				"1}]}}]\n", "plugin NodeResourcesBalancedAllocation does not have arguments in v1.21.3"},
		{"two hosts", "v1", v1beta1 + "healthzBindAddress: 127.0.0.1:1\nmetricsBindAddress: 10.0.0.1:2\n",
			"4:1: metricsBindAddress"},
	} {
		_, err := convertTo(t, c.to, c.source, false)
		out, lossyErr := convertTo(t, c.to, c.source, true)
		results.addConverted(c.name, err, out)
		t.Run(c.name, func(t *testing.T) {
			var wrong *profiles.Error
			if !errors.As(err, &wrong) ||
				!regexp.MustCompile(strings.ReplaceAll(regexp.QuoteMeta(c.want), `\|`, "|")).MatchString(err.Error()) {
				t.Errorf("error is\n%v\nwant\n%s", err, c.want)
			}
			if lossyErr != nil {
				t.Fatalf("with losses allowed: %v", lossyErr)
			}
			losses := 0
			for _, n := range out.Notes {
				if n.Loss {
					losses++
				}
			}
			if losses == 0 {
				t.Errorf("no note is marked as a loss: %v", out.Notes)
			}
			if _, err := convertTo(t, c.to, string(out.YAML), false); err != nil {
				t.Errorf("the result cannot be converted: %v\n%s", err, out.YAML)
			}
		})
	}
	results.equal(t, "convert-losses.txt")
}

// Losses do not excuse an invalid document.
func TestConvertRejectsInvalidDocumentsEvenIfLossy(t *testing.T) {
	results := transcript{}
	for _, c := range []struct{ name, to, source, want string }{
		{"mistyped plugin", "v1", v1 + "profiles:\n- plugins: {score: {enabled: [{name: ImageLocalty}]}}\n",
			"did you mean ImageLocality"},
		{"mistyped predicate", "v1", policy + "predicates: [{name: PodFitsResource}]\n", "did you mean PodFitsResources"},
		{"unknown priority", "v1", policy + "priorities: [{name: Foo, weight: 1}]\n", "remove it, or set its argument"},
		{"weights that differ", "v1beta1",
			policy +
				"priorities:\n- {name: a, weight: 1, argument: {labelPreference: {label: x}}}\n- {name: b, weight: 2, argument: " +
				"{labelPreference: {label: z}}}\n", "the same weight"},
		{"two ratios", "v1beta1",
			policy +
				"priorities:\n- {name: a, weight: 1, argument: {requestedToCapacityRatioArguments: {shape: []}}}\n- {name: b, " +
				"weight: 1, argument: {requestedToCapacityRatioArguments: {shape: []}}}\n", "remove one of them"},
		{"two arguments", "v1", policy + "predicates: [{name: a, argument: {serviceAffinity: {}, labelsPresence: {}}}]\n",
			"keep one; add a second entry for the other"},
		{"mistyped extender", "v1", policy + "extenders: [{urlPrefix: 'http://x', filterVerbs: x}]\n",
			`did you mean "filterVerb"`},
		{"bare y", "v1beta1", policy + "predicates: [{name: a, argument: {labelsPresence: {labels: [y]}}}]\n", ""},
		{"plugin at a point that it has nothing to do with", "v1",
			v1 + "profiles:\n- plugins: {filter: {enabled: [{name: ImageLocality}]}}\n", ""},
		{"release that does not read the API", "v1beta3@v1.36.3", v1, "it reads v1"},
	} {
		if c.to == "v1" {
			c.to = "v1@v1.34.2"
		}
		_, err := convertTo(t, c.to, c.source, true)
		results.add(c.name, err, nil, nil)
		t.Run(c.name, func(t *testing.T) {
			var wrong *profiles.Error
			if !errors.As(err, &wrong) || !wrong.Invalid() || !strings.Contains(wrong.Hint(), c.want) {
				t.Errorf("error is %v, want the hint %q", err, c.want)
			}
		})
	}
	results.equal(t, "convert-refuses.txt")
}

func TestTarget(t *testing.T) {
	for to, want := range map[string]string{"v1beta3": "v1beta3 v0.0.0", "kubescheduler.config.k8s.io/v1": "v1 v0.0.0",
		"v1.24.3": " v1.24.3", "1.24.3": " v1.24.3"} {
		api, release, err := profiles.Target(to)
		if got := api + " " + release.String(); err != nil || got != want {
			t.Errorf("%s is read as %q, %v", to, got, err)
		}
	}
	for _, to := range []string{"", "v2", "v1.24", "Policy", "v1alpha1"} {
		_, _, err := profiles.Target(to)
		var wrong *profiles.Error
		if !errors.As(err, &wrong) || wrong.Hint() == "" {
			t.Errorf("%q: %v", to, err)
		}
	}
}

// Positions in a ConfigMap are positions in the file.
func TestConvertReadsConfigMaps(t *testing.T) {
	results := transcript{}
	for _, c := range []struct{ name, source, want string }{
		{"policy.cfg",
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  policy.cfg: |\n    {\"kind\": \"Policy\", " +
				"\"apiVersion\": \"v1\",\n     \"predicatez\": []}\n", `f.yaml:7:6: unknown field "predicatez"`},
		{"a configuration",
			"apiVersion: v1\ndata:\n  other: \"x\"\n  c.yaml: |-\n      apiVersion: kubescheduler.config.k8s.io/v1\n      " +
				"kind: KubeSchedulerConfiguration\n\n      paralelism: 3\nkind: ConfigMap\n",
			`f.yaml:8:7: unknown field "paralelism"`},
		{"quoted",
			"apiVersion: v1\nkind: ConfigMap\ndata: {a: \"apiVersion: kubescheduler.config.k8s.io/v1\\nkind: " +
				"KubeSchedulerConfiguration\\nfoo: 1\\n\"}\n", `f.yaml:3:11: unknown field "foo"`},
		{"broken inside", "apiVersion: v1\nkind: ConfigMap\ndata:\n  a: |\n    kind: KubeSchedulerConfiguration\n    b: [\n",
			"f.yaml:"},
		{"two of them", "apiVersion: v1\nkind: ConfigMap\ndata: {a: 'kind: Policy', b: 'kind: KubeSchedulerConfiguration'}\n",
			"several keys with a configuration: a, b"},
		{"none", "apiVersion: v1\nkind: ConfigMap\ndata: {a: b}\n", "the ConfigMap has no key with a configuration"},
		{"no text", "apiVersion: v1\nkind: ConfigMap\ndata: {policy.cfg: {kind: Policy}}\n",
			"data of a ConfigMap: expected text at key"},
	} {
		_, err := convertTo(t, "v1", c.source, false)
		results.add(c.name, err, nil, nil)
		t.Run(c.name, func(t *testing.T) {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v, want %s", err, c.want)
			}
		})
	}
	results.equal(t, "convert-configmaps.txt")
}

// Any result parses again and converts to itself.
func FuzzConvert(f *testing.F) {
	inputs, err := filepath.Glob("testdata/*/*.in.*")
	if err != nil {
		f.Fatal(err)
	}
	targets := []string{"v1beta1", "v1beta1@v1.20.15", "v1beta2", "v1beta2@v1.22.2", "v1beta3", "v1beta3@v1.24.3", "v1",
		"v1@v1.25.4", "v1@v1.31.0"}
	for _, input := range inputs {
		source, err := os.ReadFile(input)
		if err != nil {
			f.Fatal(err)
		}
		for to := range targets {
			f.Add(string(source), uint8(to), to%2 == 0)
		}
	}
	f.Fuzz(func(t *testing.T, source string, to uint8, lossy bool) {
		target := targets[int(to)%len(targets)]
		out, err := convertTo(t, target, source, lossy)
		if err != nil {
			var wrong *profiles.Error
			if out != nil || !errors.As(err, &wrong) || len(wrong.Problems) == 0 {
				t.Fatalf("%v is not an error of the input", err)
			}
			return
		}
		again, err := convertTo(t, target, string(out.YAML), false)
		if err != nil {
			t.Fatalf("the result is refused: %v\n%s", err, out.YAML)
		}
		if string(again.YAML) != string(out.YAML) {
			t.Fatalf("converted again it changes:\n%s\n%s", out.YAML, again.YAML)
		}
	})
}

// Validation does not panic, and does not change the document.
func FuzzValidate(f *testing.F) {
	inputs, err := filepath.Glob("testdata/*/*.in.*")
	if err != nil {
		f.Fatal(err)
	}
	for i, input := range inputs {
		source, err := os.ReadFile(input)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(source), uint8(i))
	}
	f.Fuzz(func(t *testing.T, source string, minor uint8) {
		r := profiles.ValidateRequest{Release: versions.Release{Major: 1, Minor: 20 + int(minor)%18}, Source: []byte(source)}
		v, err := profiles.Validate(r)
		if err != nil {
			return
		}
		if _, err := v.Standalone("/x"); err != nil {
			t.Fatal(err)
		}
	})
}

// v1beta2 merges each profile with the defaults before it compares them, v1 compares the lines.
func TestConvertedProfilesHaveTheSameQueueSort(t *testing.T) {
	const source = "apiVersion: kubescheduler.config.k8s.io/v1beta2\nkind: KubeSchedulerConfiguration\nprofiles:\n"
	const prioritySort = "- schedulerName: a\n  plugins: {queueSort: {enabled: [{name: PrioritySort}]}}\n"
	for name, tc := range map[string]struct {
		profiles string
		refused  string
	}{
		"written and by default": {profiles: prioritySort + "- schedulerName: b\n"},
		"disabled in two ways": {profiles: "- schedulerName: a\n  plugins: {queueSort: {disabled: [{name: '*'}], " +
			"enabled: [{name: " + extraName + "}]}}\n- schedulerName: b\n  plugins: {queueSort: {disabled: [{name: PrioritySort}], " +
			"enabled: [{name: " + extraName + "}]}}\n"},
		"two plugins": {profiles: prioritySort + "- schedulerName: b\n  plugins: {queueSort: {disabled: [{name: '*'}], " +
			"enabled: [{name: " + extraName + "}]}}\n", refused: "queueSort differs from the first profile"},
	} {
		for _, release := range []string{"v1.21.3", "v1.24.3", "v1.30.14"} {
			t.Run(name+" "+release, func(t *testing.T) {
				_, err := convertTo(t, release, source+tc.profiles, false)
				if (err != nil) != (tc.refused != "") || err != nil && !strings.Contains(err.Error(), tc.refused) {
					t.Errorf("got %v, want %q", err, tc.refused)
				}
			})
		}
	}
}
