package matrix

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/kubescheduler"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Snapshots of two releases need programs of both; the schedulers of one snapshot and one scenario
// follow each other.
func TestSimulationsOfAMatrixAreInThisOrder(t *testing.T) {
	r := Request{
		Schedulers: []pack.Scheduler{{Source: "default"}, {Source: "new"}}, Snapshots: []string{"a",
			"b"}, Scenarios: []Scenario{{Name: "pending"}, {Name: "drain"}},
	}
	var got []string
	for _, c := range planCells(r, [][]int{{0, 1}, {2, 3}}) {
		got = append(got, fmt.Sprintf("%s: %d %d %d", c.name, c.Snapshot, c.Scenario, c.Scheduler))
	}
	want := []string{
		"a, pending, default: 0 0 0", "a, pending, new: 0 0 1", "a, drain, default: 0 1 0", "a, drain, new: 0 1 1",
		"b, pending, default: 1 0 2", "b, pending, new: 1 0 3", "b, drain, default: 1 1 2", "b, drain, new: 1 1 3",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func writeFiles(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestCopiesOfManifestsHaveNoSecrets(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"web.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, annotations: {kubectl.kubernetes.io/last-applied-configuration: hidden-1, kept: annotation}}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      initContainers: [{name: first, image: i, env: [{name: B, value: hidden-2}]}]
      containers: [{name: main, image: i, env: [{name: A, value: hidden-3}], command: [run, --token, hidden-4], resources: {requests: {cpu: 100m}}}]
---
apiVersion: v1
kind: Secret
metadata: {name: s}
stringData: {a: hidden-5}
`,
		"big.yaml": "apiVersion: v1\nkind: Node\nmetadata: {name: big}\nstatus: {allocatable: {cpu: 8}}\n",
	})
	to := t.TempDir()
	given := []scenario.Step{
		{Scenario: "add", Files: []string{"web.yaml"}, Count: 2}, {Scenario: "nodes",
			Add: []scenario.NodesToAdd{{Template: "big.yaml", Count: 1}, {Template: "worker-1", Count: 2}}},
		{Scenario: "pending"},
	}
	p := &plan{}
	steps, err := p.copySteps(t.Context(), Scenario{"s", simulate.Script{Dir: dir, Steps: given}}, to)
	if err != nil {
		t.Fatal(err)
	}
	if steps[1].Add[1].Template != "worker-1" || given[0].Files[0] != "web.yaml" ||
		given[1].Add[0].Template != "big.yaml" {
		t.Errorf("steps %+v of %+v", steps, given)
	}
	all, err := os.ReadFile(steps[0].Files[0])
	if err != nil {
		t.Fatal(err)
	}
	if text := string(all); strings.Contains(text, "hidden") || !strings.Contains(text, `"cpu":"100m"`) ||
		!strings.Contains(text, `"kept":"annotation"`) {
		t.Errorf("the copy is %s", text)
	}
	read, err := (simulate.Script{Steps: steps}).Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if w := read[0].Workloads; len(w) != 1 || w[0].Replicas != 3 || len(read[1].Objects) != 1 {
		t.Errorf("workloads %+v, nodes %+v", w, read[1].Objects)
	}
	if len(p.files) != 2 || p.files[0] != steps[0].Files[0] || p.files[1] != steps[1].Add[0].Template {
		t.Errorf("files %q", p.files)
	}
	if _, err := p.copySteps(t.Context(), Scenario{Script: simulate.Script{Dir: to, Steps: given}},
		to); !problem.IsInvalid(err) {
		t.Errorf("without the files: %v", err)
	}
}

// Each file is in the image once, and the plan there has only paths of the image.
func TestImageHasThePlanWithItsFiles(t *testing.T) {
	dir := writeFiles(t, map[string]string{"step.json": "{}"})
	in := func(name string) string { return filepath.Join(dir, name) }
	release := versions.Release{Major: 1, Minor: 24, Patch: 3}
	p := &plan{
		Snapshots: []string{in("x.tar.gz")}, files: []string{in("x.tar.gz"), in("step.json")},
		Scenarios: [][]scenario.Step{{{Scenario: "add", Files: []string{in("step.json")}},
			{Scenario: "nodes", Add: []scenario.NodesToAdd{{Template: "n", Count: 1}}}}},
	}
	configuration := profiles.Request{Source: []byte("kind: KubeSchedulerConfiguration\n")}
	for _, program := range []string{"kube-scheduler", "plugins/kube-scheduler"} {
		p.Schedulers = append(p.Schedulers, simulate.Programs{
			Scheduler: kubescheduler.Scheduler{
				Request: pack.Scheduler{Name: "s", Configuration: configuration, Args: []string{"--v=1"}}, Release: release,
				Plugins: []profiles.Plugin{{Name: "P", Args: []byte("a: 1")}}, Program: in(program),
			},
			KubeAPIServer: in("kube-apiserver"), Etcd: in("etcd"),
		})
	}
	files, err := p.imageFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, f := range files {
		paths = append(paths, fmt.Sprintf("%s %o", f.Path, f.Mode))
	}
	want := []string{
		"/opt/pmk-sched/0/etcd 755", "/opt/pmk-sched/1/kube-apiserver 755", "/opt/pmk-sched/2/kube-scheduler 755",
		"/opt/pmk-sched/3/kube-scheduler 755",
		"/opt/pmk-sched/4/step.json 755", "/opt/pmk-sched/5/x.tar.gz 755", "/opt/pmk-sched/matrix.json 644",
	}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	text, err := os.ReadFile(files[len(files)-1].Source)
	if err != nil || strings.Contains(string(text), dir) {
		t.Errorf("the plan has paths of this machine (%v): %s", err, text)
	}
	var read plan
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	second := read.Schedulers[1].Scheduler
	if second.Program != "/opt/pmk-sched/3/kube-scheduler" || second.Release != release ||
		string(second.Request.Configuration.Source) != "kind: KubeSchedulerConfiguration\n" ||
		second.Request.Args[0] != "--v=1" || second.Plugins[0].Name != "P" {
		t.Errorf("the second scheduler is %+v", second)
	}
	if steps := read.Scenarios[0]; steps[0].Files[0] != "/opt/pmk-sched/4/step.json" || steps[1].Add[0].Template != "n" ||
		p.Scenarios[0][0].Files[0] != in("step.json") {
		t.Errorf("steps %+v of %+v", steps, p.Scenarios)
	}
}

func TestSecretsOfAConfigurationAreNotPutIntoAnImage(t *testing.T) {
	const key = "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQpNSUlFcEFJQkFBS0NBUUVB"
	for text, secret := range map[string]bool{
		"extenders: [{urlPrefix: 'https://e', tlsConfig: {certFile: /a, keyFile: /b}}]":                            false,
		"extenders: [{tlsConfig: {keyData: " + key + "}}]":                                                         true,
		"extenders: [{urlPrefix: 'https://user:password@e'}]":                                                      true,
		"pluginConfig: [{name: Load, args: {token: aVeryLongOne}}]":                                                true,
		"pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {resources: [{name: cpu, weight: 1}]}}}]": false,
	} {
		request := pack.Scheduler{Configuration: profiles.Request{Source: []byte(text)}}
		inConfiguration := kubescheduler.Scheduler{Request: request}
		inArgs := kubescheduler.Scheduler{Plugins: []profiles.Plugin{{Args: []byte(text)}}}
		for _, s := range []kubescheduler.Scheduler{inConfiguration, inArgs} {
			if err := checkNoSecrets(s); (err != nil) != secret || err != nil &&
				(!problem.IsInvalid(err) || strings.Contains(err.Error(), "password@")) {
				t.Errorf("%s: got %v, want an error: %t", text, err, secret)
			}
		}
	}
}
