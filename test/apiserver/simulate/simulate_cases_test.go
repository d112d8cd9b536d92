//go:build linux && (cases || releases)

package simulate

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
)

// A bound volume holds its pod in its zone. A claim that waits for a pod is provisioned in the zone
// of the first pod, and the second pod follows it.
func TestVolumesDecideTheZone(t *testing.T) {
	t.Parallel()
	r := simulatePending(t, node("a", 4, "zone: a", "")+node("b", 4, "zone: b", "")+csiNode("a")+csiNode("b")+storage+
		pod("with-bound", "1", "", withClaim("bound"), "")+
		pod("with-new-1", "1", `creationTimestamp: "2026-01-01T00:00:00Z"`, withClaim("new")+"\nnodeSelector: {zone: a}", "")+
		pod("with-new-2", "1", `creationTimestamp: "2026-01-02T00:00:00Z"`, withClaim("new"), "")+
		pod("without", "1", "", withClaim("missing"), ""))
	want := map[string]string{"with-bound": "b", "with-new-1": "a", "with-new-2": "a"}
	equal(t, "placements", want, nodesOf(r))
	if why := reasons(r)["without"]; !strings.Contains(why, `"missing" not found`) {
		t.Errorf("reasons %q", r.Unplaced)
	}
}

// Without names the numbers are the same.
func TestSnapshotWithoutNamesIsSimulated(t *testing.T) {
	t.Parallel()
	objects := node("half", 4, "", "") + node("empty", 4, "", "") +
		pod("running", "2", "", "nodeName: half", "phase: Running") + pod("new", "1", "", "", "")
	r := simulateSnapshot(t, "pending", snapshotOf(t, objects, "--anonymize"), "--preset", "binpack")
	if len(r.Placements) != 1 || r.Placements[0].Name == "new" || r.Summary.Utilization[0].After != 3.0/8 {
		t.Errorf("without names: %+v, %+v", r.Placements, r.Summary)
	}
	for i, name := range []string{"kube-scheduler", "kube-apiserver"} {
		if len(r.Programs) != 2 || !strings.HasPrefix(r.Programs[i], name+" "+apiserver.Release+" ") {
			t.Errorf("programs of the report: %q", r.Programs)
		}
	}
}

// Requirements still compare the numbers of labels, and select by numbers that are replaced.
func TestSnapshotWithoutNamesHasTheSamePlacements(t *testing.T) {
	t.Parallel()
	const key = "11111111-0000-0000-0000-000000000008"
	requires := func(operator, number string) string {
		return "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: " +
			`[{matchExpressions: [{key: generation, operator: ` + operator + `, values: ["` + number + `"]}]}]}}}`
	}
	objects := "apiVersion: v1\nkind: Namespace\nmetadata: {name: kube-system, uid: " + key + "}\n" +
		node("old", 4, `generation: "9", account: "4711"`, "") +
		node("new", 4, `generation: "10", account: "4711"`, "") +
		node("other", 4, `generation: "11", account: "815"`, "") +
		pod("needs-old", "1", "", requires("Lt", "10"), "") +
		pod("needs-new", "1", `labels: {account: "4711"}`, "nodeSelector: {account: \"4711\"}\n"+requires("Gt", "9"), "") +
		pod("billed", "1", `labels: {account: "815"}`, `nodeSelector: {account: "815"}`, "") +
		pod("needs-none", "1", "", requires("Gt", "11"), "")
	named := nodesOf(simulatePending(t, objects))
	equal(t, "placements", map[string]string{"needs-old": "old", "needs-new": "new", "billed": "other"}, named)
	want := map[string]string{}
	for pod, node := range named {
		want[hiddenName(t, key, pod)] = hiddenName(t, key, node)
	}
	equal(t, "placements without names", want,
		nodesOf(simulateSnapshot(t, "pending", snapshotOf(t, objects, "--anonymize"))))
}

// Pods of a drained node go to other nodes, except for DaemonSet pods. Scheduled again, all pods
// fit on one node.
func TestPodsThatCanMoveAreScheduledAgain(t *testing.T) {
	t.Parallel()
	const daemon = "ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: agent, uid: " +
		"11111111-0000-0000-0000-000000000009}]"
	manifests := node("one", 8, "", "") + node("two", 8, "", "") +
		pod("daemon", "1", daemon, "nodeName: one", "phase: Running") +
		pod("first", "2", "", "nodeName: one", "phase: Running") +
		pod("second", "2", "", "nodeName: two", "phase: Running") +
		pod("waits", "2", "", "nodeSelector: {none: none}", "")
	drained := simulateSnapshot(t, "drain", snapshotOf(t, manifests), "one")
	equal(t, "drain", []report.Placement{{Namespace: "shop", Name: "first", Node: "two", From: "one"}}, drained.Placements)
	equal(t, "drain: moved, scheduled and evicted", [3]int{1, 1, 0},
		[3]int{drained.Summary.Moved, drained.Summary.Scheduled, len(drained.Evicted)})
	all := simulated(t, scenario.ReplaceAll(), manifests, presetScheduler("binpack"))
	on := nodesOf(all)
	if len(on) != 2 || on["first"] != on["second"] || reasons(all)["waits"] == "" || all.Summary.Moved != 1 {
		t.Errorf("replace-all: placements %v, unplaced %v, %+v", on, all.Unplaced, all.Summary)
	}
}

func csiNode(name string) string {
	return fmt.Sprintf(
		"---\napiVersion: storage.k8s.io/v1\nkind: CSINode\nmetadata: {name: %s}\nspec: {drivers: [{name: csi.example.com, "+
			"nodeID: x, topologyKeys: [zone]}]}\n", name)
}

const storage = `---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: zonal}
provisioner: csi.example.com
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: new, namespace: shop, uid: 11111111-0000-0000-0000-000000000001}
spec: {accessModes: [ReadWriteOnce], storageClassName: zonal, resources: {requests: {storage: 1Gi}}}
status: {phase: Pending}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: bound, namespace: shop, uid: 11111111-0000-0000-0000-000000000002, annotations: {pv.kubernetes.io/bind-completed: "yes"}}
spec: {accessModes: [ReadWriteOnce], storageClassName: zonal, volumeName: in-b, resources: {requests: {storage: 1Gi}}}
status: {phase: Bound}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: in-b}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: zonal
  claimRef: {apiVersion: v1, kind: PersistentVolumeClaim, namespace: shop, name: bound, uid: 11111111-0000-0000-0000-000000000002}
  csi: {driver: csi.example.com, volumeHandle: in-b}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [b]}]}]}}
status: {phase: Bound}
`

// hiddenName returns the replacement of a name with a key.
func hiddenName(t *testing.T, key, name string) string {
	t.Helper()
	kind, _ := snapshot.Find(snapshot.Kinds(), "v1", "Node")
	replaced, err := snapshot.NewAnonymizer([]byte(key)).Object(kind,
		map[string]any{"metadata": map[string]any{"name": name}})
	if err != nil {
		t.Fatal(err)
	}
	hidden, _, err := unstructured.NestedString(replaced, "metadata", "name")
	if err != nil {
		t.Fatal(err)
	}
	return hidden
}
