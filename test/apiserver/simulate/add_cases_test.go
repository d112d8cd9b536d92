//go:build linux && cases

package simulate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// The result contains the requested copies, and not the copies that were only tried.
func TestCountAndLimitOfCopies(t *testing.T) {
	t.Parallel()
	manifests := deployment("web", 2, requesting("cpu: 1"), "")
	r := simulateSnapshot(t, "add", snapshotOf(t, node("a", 8, "", "")), "-m", run.WriteFile(t, "add.yaml", manifests),
		"--count", "2", "--limit", "1")
	equal(t, "placements", 4, len(r.Placements))
	equal(t, "capacity", &report.Capacity{PodsPerCopy: 2, Copies: 3, More: 1, Limited: true}, r.Capacity)
	if u := r.Summary.Utilization[0]; u.After != 0.5 {
		t.Errorf("utilization %+v", u)
	}
	r = simulateAdd(t, node("a", 8, "", ""), manifests, 5, scenario.DefaultLimit)
	equal(t, "placed and unplaced", [2]int{8, 2}, [2]int{len(r.Placements), len(r.Unplaced)})
	equal(t, "copies and more", [2]int{4, 0}, [2]int{r.Capacity.Copies, r.Capacity.More})
	equal(t, "stopped", true, r.Capacity.Stop != nil)
}

// The pods of a StatefulSet have their claims, and their volumes decide the zone.
func TestAddedPodsHaveTheirClaims(t *testing.T) {
	t.Parallel()
	const set = `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: shop}
spec:
  serviceName: db
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {nodeSelector: {zone: b}, containers: [{name: db, image: db, resources: {requests: {cpu: 1}}}]}
  volumeClaimTemplates:
  - {metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], storageClassName: zonal, resources: {requests: {storage: 1Gi}}}}
`
	r := simulateAdd(t, node("a", 4, "zone: a", "")+node("b", 4, "zone: b", "")+csiNode("a")+csiNode("b")+storage, set, 1,
		scenario.DefaultLimit)
	equal(t, "placements", map[string]string{"db-0": "b", "db-1": "b"}, nodesOf(r))
	if r.Capacity.Copies != 2 {
		t.Errorf("%+v", r.Capacity)
	}
}

// New nodes already run the DaemonSet pods, and get pending pods.
func TestPendingPodsGoToNewNodes(t *testing.T) {
	t.Parallel()
	const daemon = "ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: agent, uid: " +
		"11111111-0000-0000-0000-000000000009}]"
	manifests := node("a", 4, "", "") + pod("agent", "1", daemon, "nodeName: a", "phase: Running") + pod("full", "3", "",
		"nodeName: a", "phase: Running") +
		pod("large", "4", "", "", "") + pod("small-1", "3", "", "", "") + pod("small-2", "3", "", "", "")
	r := simulateSnapshot(t, "nodes", snapshotOf(t, manifests), "--add", "a=2")
	on := nodesOf(r)
	if len(on) != 2 || on["small-1"] == on["small-2"] || !strings.HasPrefix(on["small-1"], "a-new-") ||
		reasons(r)["large"] == "" {
		t.Errorf("placements %v, unplaced %v", on, r.Unplaced)
	}
	equal(t, "nodes", 3, r.Summary.Nodes)
	u := r.Summary.Utilization[0]
	equal(t, "allocatable before and after", [2]string{"4", "12"}, [2]string{u.Allocatable, u.AllocatableAfter})
	equal(t, "utilization", 1.0, u.After)
	template := readManifests(t,
		"apiVersion: v1\nkind: Node\nmetadata: {name: big}\nstatus: {allocatable: {cpu: 8, memory: 8Gi, pods: 10}}\n")
	big, err := scenario.Nodes([]scenario.Template{{Name: "big", Node: template[0], Count: 1, First: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if on := nodesOf(simulated(t, big, manifests, pack.Scheduler{})); on["large"] != "big-new-1" {
		t.Errorf("placements %v", on)
	}
}

// Each step begins with the state that the one before left: the pods of the drained node fit when
// there is a new one.
func TestStepsBuildOnEachOther(t *testing.T) {
	t.Parallel()
	file := snapshotOf(t, node("a", 4, "", "")+node("b", 4, "", "")+
		pod("on-a", "3", "", "nodeName: a", "phase: Running")+pod("on-b", "3", "", "nodeName: b", "phase: Running"))
	dir := t.TempDir()
	steps := filepath.Join(dir, "steps.yaml")
	web, webFile := deployment("web", 1, requesting("cpu: 1"), ""), filepath.Join(dir, "web.yaml")
	for file, text := range map[string]string{webFile: web, steps: `apiVersion: pmk-sched.io/v1alpha1
kind: Scenario
steps:
- {scenario: drain, nodes: [a]}
- {scenario: add, files: [web.yaml], limit: 0}
- {scenario: nodes, add: {b: 1}}
`} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := simulateSnapshot(t, "run", file, steps)
	if len(r.Steps) != 3 || reasons(*r.Steps[0])["on-a"] == "" || len(r.Steps[1].Placements) != 1 {
		t.Fatalf("steps %+v", r.Steps)
	}
	want := []report.Placement{
		{Namespace: "shop", Name: "on-a", Node: "b-new-1", From: "a"},
		{Namespace: "shop", Name: r.Steps[1].Placements[0].Name, Node: "b"},
	}
	equal(t, "placements", want, r.Placements)
	equal(t, "unplaced pods", map[string]string{}, reasons(r))
	equal(t, "moved, nodes and pods", [3]int{1, 3, 2}, [3]int{r.Summary.Moved, r.Summary.Nodes, r.Summary.Pods})
}
