//go:build linux && cases

package plugins

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/foresight/policytest"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// A plugin that reads a custom resource finds it; expectations that are not met are printed with
// the actual result, and the exit status is 3.
func TestExpectationsThatAreNotMetFail(t *testing.T) {
	t.Parallel()
	dir := newPluginModule(t)
	text := strings.Replace(nodesAndPods, "EXPECT", `
- {pod: shop/web-*, node: a}
- {pod: shop/big, pending: Insufficient memory}
- {pod: shop/low, evicted: true}
- {pod: shop/high, nodes: [a, c]}
- {pod: none, pending: ""}
`, 1)
	wrong := run.WriteFile(t, "wrong.yaml", text)
	r := run.PMKSched(t, pluginTestArgs(dir, "-o", "json", wrong)...)
	r.Fails(t, 3, "error: 3 of 5 expectations are not met")
	t.Log(r.Stderr)
	got := run.Decode[testResult](t, r.Stdout).Runs[0].Expectations
	insufficient := got[1].Got
	if !strings.Contains(insufficient, "pending: ") || !strings.Contains(insufficient, "Insufficient cpu") {
		t.Errorf("got %+v", got[1])
	}
	outcome := func(pod, expected, got string, met bool, failures ...policytest.Failure) policytest.Outcome {
		return policytest.Outcome{Name: pod + ": " + expected, Expected: expected, Got: got, Met: met, Failures: failures}
	}
	want := []policytest.Outcome{
		outcome("shop/web-*", "on node a", "0 of 2 pods", false,
			policytest.Failure{Pod: "shop/web-1", Node: "b", Got: "on node b"},
			policytest.Failure{Pod: "shop/web-2", Node: "b", Got: "on node b"}),
		outcome("shop/big", "pending: Insufficient memory", insufficient, false,
			policytest.Failure{Pod: "shop/big", Got: insufficient}),
		outcome("shop/low", "evicted", "evicted by shop/high", true),
		outcome("shop/high", "on node a or c", "on node c", true),
		outcome("default/none", "pending", "no such pod", false),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	run.PMKSched(t, pluginTestArgs(dir, wrong)...).Fails(t, 3, "RELEASE", "default/none: pending", "no such pod", "FAILED")
}

// A change of the source is tested again, on the API server that runs already.
func TestWatchTestsThePluginAgainAfterAChange(t *testing.T) {
	t.Parallel()
	dir := newPluginModule(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &run.Output{}
	cmd := exec.CommandContext(ctx, run.Program(t), pluginTestArgs(dir, "--watch", filepath.Join(dir, "scenario.yaml"))...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	// The process compiles the plugin, which other compilers may delay.
	tooLong := time.After(20 * time.Minute)
	awaitOutput := func(text string) {
		t.Helper()
		for !strings.Contains(out.String(), text) {
			select {
			case err := <-ended:
				t.Fatalf("it ended before it wrote %q: %v: %s", text, err, out)
			case <-tooLong:
				t.Fatalf("it has not written %q: %s", text, out)
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
	awaitOutput("2 of 2 expectations are met")
	awaitOutput("waiting for changes")
	source := filepath.Join(dir, "quiet.go")
	replace := func(old, replaced string) {
		t.Helper()
		out.Reset()
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(source, bytes.Replace(text, []byte(old), []byte(replaced), 1), 0o600); err != nil {
			t.Fatal(err)
		}
		awaitOutput("waiting for changes")
	}
	replace(`found {`, `!found {`)
	if text := out.String(); !strings.Contains(text, "error: 2 of 2 expectations are not met") ||
		strings.Contains(text, "start the API server") {
		t.Errorf("after a mistake: %s", text)
	}
	replace(`!found {`, `!found [`)
	if text := out.String(); !strings.Contains(text, "error: ") || strings.Contains(text, "expectations are") {
		t.Errorf("after an error of syntax: %s", text)
	}
	replace(`!found [`, `found {`)
	if text := out.String(); !strings.Contains(text, "2 of 2 expectations are met") {
		t.Errorf("after the correction: %s", text)
	}
	t.Log(out.String())
	cancel()
	if err := <-ended; cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("after an interrupt: %v: %s", err, out)
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
