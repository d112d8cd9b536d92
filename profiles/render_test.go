package profiles_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/golden"
	"github.com/pmk-sched/pmk-sched/versions"
)

const (
	article   = "../test/testdata/article/"
	kubePath  = "/srv/kubernetes/kubeconfigs/kubeconfig-for-my-scheduler.yaml"
	extraName = "MyPlugin"
)

func request(t *testing.T, release string) profiles.Request {
	t.Helper()
	r, err := versions.Parse(release)
	if err != nil {
		t.Fatal(err)
	}
	return profiles.Request{Release: r, SchedulerName: "my-scheduler", Kubeconfig: kubePath}
}

// convert renders a source for a release.
func convert(t *testing.T, release, source string) (*profiles.Rendered, error) {
	t.Helper()
	r := request(t, release)
	r.Source, r.SourceName, r.Plugins = []byte(source), "f.yaml", []string{extraName}
	return profiles.Render(r)
}

// equalRendered compares a rendered configuration and its notes with a file.
func equalRendered(t *testing.T, file string, out *profiles.Rendered) {
	t.Helper()
	var text bytes.Buffer
	for _, note := range out.Notes {
		fmt.Fprintf(&text, "# %d:%d %s\n", note.Line, note.Column, note.Message)
	}
	if len(out.Args) > 0 {
		fmt.Fprintf(&text, "# args %s\n", strings.Join(out.Args, " "))
	}
	text.Write(out.YAML)
	golden.Equal(t, file, text.Bytes())
}

func TestPresetsMatchGoldenFiles(t *testing.T) {
	for _, preset := range profiles.Presets() {
		if preset.Description == "" {
			t.Errorf("preset %s has no description", preset.Name)
		}
		for _, known := range versions.Releases() {
			release := known.String()
			r := request(t, release)
			r.Preset, r.InsecurePort = preset.Name, 10262
			out, err := profiles.Render(r)
			if err != nil {
				t.Fatalf("%s for %s: %v", preset.Name, release, err)
			}
			if len(out.Notes) > 0 {
				t.Errorf("%s for %s: unexpected notes on a preset: %v", preset.Name, release, out.Notes)
			}
			equalRendered(t, filepath.Join("testdata/presets", preset.Name+"-"+filepath.Base(out.APIVersion)+".yaml"), out)
		}
	}
}

// Each input has a line with the releases to convert it to.
func TestRenderMatchesGoldenFiles(t *testing.T) {
	inputs, err := filepath.Glob("testdata/convert/*.in.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no inputs: %v", err)
	}
	releases := regexp.MustCompile(`(?m)^# to: (.*)$`)
	for _, input := range inputs {
		source, err := os.ReadFile(input)
		if err != nil {
			t.Fatal(err)
		}
		found := releases.FindSubmatch(source)
		if found == nil {
			t.Fatalf("%s has no line `# to: releases`", input)
		}
		for _, release := range strings.Fields(string(found[1])) {
			t.Run(filepath.Base(input)+" to "+release, func(t *testing.T) {
				out, err := convert(t, release, string(source))
				if err != nil {
					t.Fatal(err)
				}
				equalRendered(t, strings.TrimSuffix(input, ".in.yaml")+"-"+release+".yaml", out)
			})
		}
	}
}

// The printed article lost its indentation, and one line is wrapped; the corrected one is its only
// possible meaning.
func TestRenderRepairsPrintedArticle(t *testing.T) {
	var rendered []string
	for _, file := range []string{"as-printed.yaml", "my-scheduler.yaml"} {
		source, err := os.ReadFile(article + file)
		if err != nil {
			t.Fatal(err)
		}
		r := request(t, "v1.24.3")
		r.Source, r.SourceName = source, file
		out, err := profiles.Render(r)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		equalRendered(t, "testdata/article-"+file, out)
		rendered = append(rendered, string(out.YAML))
	}
	if diff := cmp.Diff(rendered[1], rendered[0]); diff != "" {
		t.Errorf("as printed differs (-corrected +printed):\n%s", diff)
	}
}

// The same without the four spaces that the ConfigMap puts before each line.
func TestRenderRepairsUnindentedArticle(t *testing.T) {
	source, err := os.ReadFile(article + "as-printed.yaml")
	if err != nil {
		t.Fatal(err)
	}
	unindented := regexp.MustCompile(`(?m)^ {4}`).ReplaceAllString(string(source), "")
	if _, err := convert(t, "v1.24.3", unindented); err != nil {
		t.Error(err)
	}
}

// pmk-sched always sets the fields that a deployed scheduler needs.
func TestRenderSetsDeploymentFields(t *testing.T) {
	const own = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
	cases := []struct {
		name, source string
		elect        bool
		want         map[string]any
	}{
		{"nothing said", own, false, map[string]any{"qps": 5000.0, "burst": 5000.0, "leaderElect": false}},
		{"leader election asked for", own, true, map[string]any{"leaderElect": true}},
		{"leader election asked for against the source", own + "leaderElection: {leaderElect: false}\n", true, map[string]any{
			"leaderElect": true}},
		{"leader election in the source", own + "leaderElection: {leaderElect: true, leaseDuration: 30s}\n", false,
			map[string]any{"leaderElect": true, "leaseDuration": "30s"}},
		{"own limits", own + "clientConnection: {qps: 200}\n", false, map[string]any{"qps": 200.0, "burst": nil}},
		{"zero limits", own + "clientConnection: {qps: 0, burst: 0}\n", false, map[string]any{
			"qps": 5000.0, "burst": 5000.0}},
		{"lease of another", own +
			"leaderElection: {resourceName: kube-scheduler, resourceLock: endpoints, resourceNamespace: x}\n", false, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := request(t, "v1.36.3")
			r.Source, r.SourceName, r.LeaderElect, r.LeaseNamespace = []byte(c.source), "f.yaml", c.elect, "scheduling"
			out, err := profiles.Render(r)
			if err != nil {
				t.Fatal(err)
			}
			got := flatten(t, out.YAML)
			want := map[string]any{"resourceName": "my-scheduler", "resourceNamespace": "scheduling", "resourceLock": "leases",
				"kubeconfig": kubePath}
			for key, value := range c.want {
				want[key] = value
			}
			for key, value := range want {
				if got[key] != value {
					t.Errorf("%s is %v, want %v", key, got[key], value)
				}
			}
		})
	}
}

// flatten returns leaderElection and clientConnection as one map.
func flatten(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var doc map[string]any
	if err := yaml.UnmarshalStrict(text, &doc); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	flat := map[string]any{}
	for _, section := range []string{"leaderElection", "clientConnection"} {
		for key, value := range doc[section].(map[string]any) {
			flat[key] = value
		}
	}
	return flat
}

func TestRenderBindsInsecurePortToLoopback(t *testing.T) {
	for release, want := range map[string]int{"v1.20.15": 10299, "v1.22.2": 10299, "v1.23.17": 0, "v1.36.3": 0} {
		r := request(t, release)
		r.InsecurePort = 10299
		out, err := profiles.Render(r)
		if err != nil {
			t.Fatal(err)
		}
		if out.Ports.Insecure != want {
			t.Errorf("%s: insecure port %d, want %d", release, out.Ports.Insecure, want)
		}
		if got := strings.Count(string(out.YAML), "127.0.0.1:10299"); got != map[bool]int{true: 2, false: 0}[want > 0] {
			t.Errorf("%s: the port is in the configuration %d times:\n%s", release, got, out.YAML)
		}
	}
}

// Nodes that share an anchor are edited separately.
func TestRenderExpandsAliases(t *testing.T) {
	out, err := convert(t, "v1.24.3", `
apiVersion: kubescheduler.config.k8s.io/v1beta1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: my-scheduler
  plugins: &p {score: {disabled: [{name: TaintToleration}]}}
- schedulerName: second
  plugins: *p
`)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(out.YAML), "name: NodeAffinity, weight"); got != 2 ||
		strings.ContainsAny(string(out.YAML), "&") {
		t.Errorf("NodeAffinity is in %d profiles, want 2:\n%s", got, out.YAML)
	}
}

func TestRenderReadsJSON(t *testing.T) {
	out, err := convert(t, "v1.24.3",
		`{"apiVersion": "kubescheduler.config.k8s.io/v1beta2", "kind": "KubeSchedulerConfiguration", "parallelism": 8}`)
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := yaml.UnmarshalStrict(out.YAML, &doc); err != nil || doc["parallelism"] != 8.0 ||
		doc["apiVersion"] != out.APIVersion {
		t.Errorf("%v in\n%s", err, out.YAML)
	}
}

// A scheduler takes a text that begins with a brace for JSON.
func TestRenderWritesTheRootInBlockStyle(t *testing.T) {
	out, err := convert(t, "v1.24.3",
		"{apiVersion: kubescheduler.config.k8s.io/v1beta3, kind: KubeSchedulerConfiguration, parallelism: 8}")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(out.YAML), "apiVersion: ") {
		t.Errorf("the document begins otherwise:\n%s", out.YAML)
	}
}

func TestRenderReportsLeaderElection(t *testing.T) {
	for value, want := range map[string]bool{"true": true, "yes": true, "false": false, "null": false} {
		out, err := convert(t, "v1.24.3",
			"apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\nleaderElection: {leaderElect: "+
				value+"}\n")
		if err != nil {
			t.Fatal(err)
		}
		if out.LeaderElect != want {
			t.Errorf("leaderElect: %s is reported as %v", value, out.LeaderElect)
		}
	}
}

func TestRenderReportsNamedPlugins(t *testing.T) {
	out, err := convert(t, "v1.36.3", `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint: {enabled: [{name: MyPlugin}]}
    score: {disabled: [{name: ImageLocality}]}
  pluginConfig:
  - {name: NodeAffinity, args: {}}
`)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"MyPlugin", "NodeAffinity"}, out.Plugins); diff != "" {
		t.Errorf("plugins (-want +got):\n%s", diff)
	}
}

func TestRenderUsesTheRulesOfTheClosestRelease(t *testing.T) {
	for minor, want := range map[int]string{19: "v1beta1", 99: "v1"} {
		r := request(t, "v1.24.3")
		r.Release.Minor = minor
		out, err := profiles.Render(r)
		if err != nil || out.APIVersion != "kubescheduler.config.k8s.io/"+want {
			t.Errorf("1.%d: got %v, %v; want %s", minor, out, err, want)
		}
	}
}
