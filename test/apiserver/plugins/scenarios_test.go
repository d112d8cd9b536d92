//go:build linux

package plugins

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/foresight/expect"
	"github.com/pmk-sched/pmk-sched/internal/foresight/policytest"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// newPluginModule creates a plugin with `plugin new` and returns its directory.
func newPluginModule(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "quiet")
	run.PMKSched(t, "plugin", "new", "--dir", dir, "Quiet").OK(t).Prints(t, "plugin test -f pmk-sched.yaml --branch v")
	return dir
}

// pluginTestArgs returns the arguments of `plugin test` for scenarios of a plugin's directory.
func pluginTestArgs(dir string, args ...string) []string {
	return append([]string{"plugin", "test", "-f", filepath.Join(dir, "pmk-sched.yaml"), "--branch", apiserver.Release},
		args...)
}

type testResult struct {
	Runs []policytest.Result `json:"runs"`
}

func TestNewPluginPassesItsScenario(t *testing.T) {
	t.Parallel()
	dir := newPluginModule(t)
	file := filepath.Join(dir, "scenario.yaml")
	r := run.PMKSched(t, pluginTestArgs(dir, "-o", "json", file)...).OK(t)
	r.Prints(t, "2 of 2 expectations are met")
	t.Log(r.Stderr)
	result := run.Decode[testResult](t, r.Stdout)
	if len(result.Runs) != 1 || result.Runs[0].Release != apiserver.Release || result.Runs[0].Test != file ||
		result.Runs[0].Seconds <= 0 {
		t.Fatalf("got %s", r)
	}
	const reason = "pending: the node has the label quiet/exclude"
	got := result.Runs[0].Expectations
	web := expect.Outcome{Name: "default/web: on node open", Expected: "on node open", Got: "on node open", Met: true}
	if len(got) != 2 || !cmp.Equal(got[0], web) ||
		got[1].Name != "default/stuck: "+reason || got[1].Expected != reason ||
		!strings.Contains(got[1].Got, "2 node(s) the node has the label quiet/exclude") &&
			!strings.Contains(got[1].Got, "2 the node has the label quiet/exclude") {
		t.Errorf("got %+v", got)
	}
}

// nodesAndPods has a node a that the plugin rejects, a node b with room for two small pods, and a
// node c where a pod must be evicted.
const nodesAndPods = `apiVersion: pmk-sched.io/v1alpha1
kind: SchedulingTest
objects:
- {apiVersion: v1, kind: Node, metadata: {name: a, labels: {quiet/exclude: ""}}, status: {allocatable: {cpu: "8", memory: 8Gi}}}
- {apiVersion: v1, kind: Node, metadata: {name: b}, status: {allocatable: {cpu: "2", memory: 8Gi}}}
- {apiVersion: v1, kind: Node, metadata: {name: c, labels: {pool: c}}, status: {allocatable: {cpu: "2", memory: 8Gi}}}
- apiVersion: apiextensions.k8s.io/v1
  kind: CustomResourceDefinition
  metadata: {name: calms.example.com}
  spec:
    group: example.com
    scope: Namespaced
    names: {kind: Calm, plural: calms, singular: calm, listKind: CalmList}
    versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
- {apiVersion: example.com/v1, kind: Calm, metadata: {name: night, namespace: elsewhere}, spec: {hours: 8}}
- {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 1000}
- apiVersion: v1
  kind: Pod
  metadata: {name: low, namespace: shop}
  spec: {nodeName: c, containers: [{name: main, image: low, resources: {requests: {cpu: "2"}}}]}
- apiVersion: v1
  kind: Pod
  metadata: {name: high, namespace: shop}
  spec: {priorityClassName: high, nodeSelector: {pool: c}, containers: [{name: main, image: high, resources: {requests: {cpu: "2"}}}]}
- count: 2
  object:
    apiVersion: v1
    kind: Pod
    metadata: {name: web, namespace: shop}
    spec: {containers: [{name: main, image: web, resources: {requests: {cpu: "1"}}}]}
- apiVersion: v1
  kind: Pod
  metadata: {name: big, namespace: shop}
  spec: {containers: [{name: main, image: big, resources: {requests: {cpu: "7"}}}]}
expect: EXPECT`

func TestScenariosThatCannotBeReadAreRefused(t *testing.T) {
	t.Parallel()
	dir := newPluginModule(t)
	run.PMKSched(t, pluginTestArgs(dir)...).Fails(t, 2, "PATH is required")
	run.PMKSched(t, "plugin", "test", "--branch", apiserver.Release, filepath.Join(dir, "scenario.yaml")).Fails(t, 2,
		"no plugins to test", "--with")
	empty := run.WriteFile(t, "steps.yaml",
		"apiVersion: pmk-sched.io/v1alpha1\nkind: Scenario\nsteps: [{scenario: pending}]\n")
	run.PMKSched(t, pluginTestArgs(dir, empty)...).Fails(t, 2, `expected a SchedulingTest, got pmk-sched.io/v1alpha1 "Scenario"`)
}
