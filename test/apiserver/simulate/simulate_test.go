//go:build linux

// Package simulate runs simulations with the scheduler and the API server of a release, on
// snapshots of manifests.
package simulate

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// snapshotOf makes a snapshot of manifests.
func snapshotOf(t *testing.T, manifests string, args ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "cluster.tar.gz")
	run.PMKSched(t, append([]string{"snapshot", "--from", run.WriteFile(t, "objects.yaml", manifests), "--to-file", file},
		args...)...).OK(t)
	return file
}

// simulateSnapshot runs `pmk-sched simulate`. Tests of where pods go need no command: they use
// [simulated].
func simulateSnapshot(t *testing.T, scenario, file string, args ...string) report.Report {
	t.Helper()
	args = append([]string{"simulate", scenario, "--snapshot", file, "--branch", apiserver.Release, "-o", "json"}, args...)
	return run.Decode[report.Report](t, run.PMKSched(t, args...).OK(t).Stdout)
}

// node returns a node with CPUs, its labels and more of its specification, in flow style.
func node(name string, cpus int, labels, spec string) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: Node
metadata: {name: %[1]s, labels: {kubernetes.io/hostname: %[1]s, %[3]s}}
spec: {%[4]s}
status: {capacity: {cpu: "%[2]d", memory: 8Gi, pods: "110"}, allocatable: {cpu: "%[2]d", memory: 8Gi, pods: "110"}}
`, name, cpus, labels, spec)
}

// pod returns a pod that requests CPU, with more of its metadata, specification and status.
func pod(name, cpu, metadata, spec, status string) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: shop, %s}
spec:
  containers: [{name: main, image: "shop/web:1", resources: {requests: {cpu: "%s"}}}]
%s
status: {%s}
`, name, metadata, cpu, indent(spec), status)
}

func indent(text string) string {
	if text == "" {
		return ""
	}
	return "  " + strings.ReplaceAll(text, "\n", "\n  ")
}

// nodesOf returns where the pods went, by name.
func nodesOf(r report.Report) map[string]string {
	nodes := map[string]string{}
	for _, p := range r.Placements {
		nodes[p.Name] = p.Node
	}
	return nodes
}

// reasons returns why the pods have no node, by name.
func reasons(r report.Report) map[string]string {
	all := map[string]string{}
	for _, u := range r.Unplaced {
		all[u.Name] = u.Reason
	}
	return all
}

func TestPendingPodsArePlacedWhereTheyFit(t *testing.T) {
	t.Parallel()
	r := simulatePending(t, node("full", 4, "", "")+node("finished", 4, "", "")+node("leaving", 4, "", "")+node("cordoned",
		4, "", "unschedulable: true, taints: [{key: node.kubernetes.io/unschedulable, effect: NoSchedule}]")+
		pod("running", "3", "", "nodeName: full", "phase: Running, startTime: \"2026-01-01T00:00:00Z\"")+
		pod("done", "4", "", "nodeName: finished", "phase: Succeeded")+
		pod("on-its-way-out", "3", `deletionTimestamp: "2026-01-01T00:00:00Z"`, "nodeName: leaving", "phase: Running")+
		pod("fits", "3", "", "", "phase: Pending")+
		pod("does-not-fit", "100", "", "", "phase: Pending"))
	equal(t, "placements", map[string]string{"fits": "finished"}, nodesOf(r))
	if why := reasons(r)["does-not-fit"]; !strings.Contains(why, "0/4 nodes are available") ||
		!strings.Contains(why, "Insufficient cpu") || !strings.Contains(why, "unschedulable") {
		t.Errorf("reasons %q", r.Unplaced)
	}
	s := r.Summary
	equal(t, "nodes, pods, scheduled, placed, unplaced and evicted", [6]int{4, 2, 2, 1, 1, 0},
		[6]int{s.Nodes, s.Pods, s.Scheduled, s.Placed, s.Unplaced, s.Evicted})
	equal(t, "release", apiserver.Release, r.Release)
	u := s.Utilization[0]
	equal(t, "resource", "cpu", u.Resource)
	equal(t, "utilization before and after", [2]float64{6.0 / 16, 9.0 / 16}, [2]float64{u.Before, u.After})
}

// Pods are scheduled by priority and age, not by name; one that needs the room evicts one of lower
// priority.
func TestPriorityDecidesWhoGetsTheRoom(t *testing.T) {
	t.Parallel()
	r := simulatePending(t, node("one", 4, "", "")+node("two", 4, "pool: special", "")+
		pod("a-new", "3", `creationTimestamp: "2026-01-03T00:00:00Z"`, "priority: 0", "")+
		pod("b-old", "3", `creationTimestamp: "2026-01-01T00:00:00Z"`, "priority: 0", "")+
		pod("c-important", "3", `creationTimestamp: "2026-01-04T00:00:00Z"`, "priority: 10", "")+
		pod("low", "3", "", "nodeName: two\npriority: -10", "phase: Running")+
		pod("needs-two", "3", "", "priority: 5\nnodeSelector: {pool: special}", ""))
	want := map[string]string{"c-important": "one", "needs-two": "two"}
	equal(t, "placements", want, nodesOf(r))
	equal(t, "evicted", []report.Placement{{Namespace: "shop", Name: "low", Node: "two", By: "shop/needs-two"}}, r.Evicted)
	if len(r.Unplaced) != 2 || reasons(r)["a-new"] == "" || reasons(r)["b-old"] == "" {
		t.Errorf("unplaced %q", r.Unplaced)
	}
}

func withClaim(claim string) string {
	return "volumes: [{name: data, persistentVolumeClaim: {claimName: " + claim + "}}]"
}

// Admission and the names of other schedulers do not change the pods of a snapshot.
func TestObjectsAreLoadedAsTheyAre(t *testing.T) {
	t.Parallel()
	r := simulatePending(t, `apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {pod-security.kubernetes.io/enforce: restricted}}
`+node("one", 4, "", "taints: [{key: node.kubernetes.io/not-ready, effect: NoSchedule}]")+node("two", 4, "", "")+
		pod("tolerates-nothing", "1", "", "overhead: {cpu: 100m}\npriority: 2000001000\npriorityClassName: none", "")+
		pod("of-another-scheduler", "1", "", "schedulerName: other", ""))
	want := map[string]string{"tolerates-nothing": "two", "of-another-scheduler": "two"}
	equal(t, "placements", want, nodesOf(r))
	if !strings.Contains(strings.Join(r.Notes, "\n"), "1 pod names a scheduler") {
		t.Errorf("notes %q", r.Notes)
	}
}

// The configuration of a preset decides.
func TestPresetDecides(t *testing.T) {
	t.Parallel()
	objects := node("half", 4, "", "") + node("empty", 4, "", "") +
		pod("running", "2", "", "nodeName: half", "phase: Running") + pod("new", "1", "", "", "")
	for preset, want := range map[string]string{"spread": "empty", "binpack": "half"} {
		if got := nodesOf(simulated(t, scenario.Pending(), objects, presetScheduler(preset)))["new"]; got != want {
			t.Errorf("%s places the pod on %s, want %s", preset, got, want)
		}
	}
}

// A cordoned node is a domain for spreading, an absent one is not: the answer to "can the node be
// removed" is another one than the answer to "can it be drained".
func TestDrainShowsWhereThePodsGoWhenTheNodeIsRemoved(t *testing.T) {
	t.Parallel()
	const spread = "topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, " +
		"whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: s}}}]"
	var manifests strings.Builder
	for _, name := range []string{"a", "b", "c"} {
		manifests.WriteString(node(name, 4, "", "") +
			pod("s-"+name, "1", "labels: {app: s}", "nodeName: "+name+"\n"+spread, "phase: Running"))
	}
	r := simulateSnapshot(t, "drain", snapshotOf(t, manifests.String()), "c")
	if why := reasons(r)["s-c"]; !strings.Contains(why, "topology spread constraints") {
		t.Errorf("drained: placements %v, reason %q", nodesOf(r), why)
	}
	if r.Removed == nil || len(r.Removed.Placements) != 1 || len(r.Removed.Unplaced) != 0 {
		t.Fatalf("removed: %+v", r.Removed)
	}
	if p := r.Removed.Placements[0]; p.Name != "s-c" || p.From != "c" || p.Node != "a" && p.Node != "b" {
		t.Errorf("removed: %+v", p)
	}
}

// A pod whose node is not in the snapshot takes no part: its node would count as read before the
// others, and its labels would count for spreading.
func TestPodsOfNodesThatDoNotExistAreLeftOut(t *testing.T) {
	t.Parallel()
	manifests := node("a", 4, "", "") + pod("new", "1", "", "", "") +
		pod("lost", "1", "", "nodeName: gone", "phase: Running")
	r := simulatePending(t, manifests)
	equal(t, "placements", map[string]string{"new": "a"}, nodesOf(r))
	equal(t, "nodes and pods", [2]int{1, 0}, [2]int{r.Summary.Nodes, r.Summary.Pods})
	if notes := strings.Join(r.Notes, "\n"); !strings.Contains(notes, "1 pod is left out: the snapshot does not have its node") {
		t.Errorf("notes %q", notes)
	}
	all := simulated(t, scenario.ReplaceAll(), manifests, pack.Scheduler{})
	equal(t, "placements of all", map[string]string{"new": "a", "lost": "a"}, nodesOf(all))
}

func TestSimulationsThatCannotRunAreRefused(t *testing.T) {
	t.Parallel()
	file := snapshotOf(t, node("one", 4, "", ""))
	run.PMKSched(t, "simulate", "pending", "--snapshot", file).Fails(t, 2, "does not have the release", "--branch")
	run.PMKSched(t, "simulate", "drain", "--snapshot", file, "--branch", apiserver.Release, "two").Fails(t, 2,
		"no node two")
	run.PMKSched(t, "simulate", "pending", "--snapshot", run.WriteFile(t, "x", "y"), "--branch",
		apiserver.Release).Fails(t, 2, "line 1: expected an object")
}
