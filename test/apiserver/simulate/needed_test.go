//go:build linux

package simulate

import (
	"context"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/foresight/needed"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
)

// neededLike returns how many nodes like a node the pending pods need, at most eight.
func neededLike(t *testing.T, template string, objects *objects) (need *needed.Need) {
	t.Helper()
	withSimulator(t, apiserver.Release, func(sim *simulator) (err error) {
		need, _, err = needed.Of(t.Context(), sim.session, simulate.Script{}, template, 8,
			func(ctx context.Context, s scenario.Scenario) (*report.Report, error) {
				o := sim.options(t, objects, pack.Scheduler{})
				o.Scenario = s
				return sim.server.Run(ctx, o)
			})
		return err
	})
	return need
}

// Hard spreading counts the full node, so that no other one may have two pods. New nodes have the
// limits of the drivers of their template, and its DaemonSets take room on each of them.
func TestNodesThatPendingPodsNeedDependOnMoreThanTheirSum(t *testing.T) {
	t.Parallel()
	const (
		spread = "topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, " +
			"whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: s}}}]"
		daemon = "ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: agent, uid: " +
			"11111111-0000-0000-0000-000000000009}]"
		limited = "---\napiVersion: storage.k8s.io/v1\nkind: CSINode\nmetadata: {name: w}\nspec: {drivers: [{name: " +
			"csi.example.com, nodeID: x, topologyKeys: [], allocatable: {count: 2}}]}\n"
	)
	full := node("w", 8, "", "") + pod("full", "8", "", "nodeName: w", "phase: Running")
	volumes, spreading := node("w", 8, "", "")+limited, full
	for _, name := range []string{"p-1", "p-2", "p-3"} {
		spreading += pod(name, "1", "labels: {app: s}", spread, "")
		volumes += boundClaim(name) + pod(name, "1", "", withClaim(name), "")
	}
	for name, tc := range map[string]struct {
		manifests       string
		nodes, unplaced int
	}{
		"spreading":         {spreading, 3, 0},
		"limits of drivers": {volumes, 1, 0},
		"DaemonSets": {node("w", 4, "", "") + pod("agent", "1", daemon, "nodeName: w", "phase: Running") +
			pod("fill", "3", "", "nodeName: w", "phase: Running") + pod("job", "3500m", "", "", ""), 0, 1},
	} {
		need := neededLike(t, "w", newObjects(t, tc.manifests))
		equal(t, name+": nodes and pods without one", [2]int{tc.nodes, tc.unplaced}, [2]int{need.Nodes, len(need.Unplaced)})
	}
}

// boundClaim returns a claim with a volume.
func boundClaim(name string) string {
	return strings.ReplaceAll(`---
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv-NAME}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  claimRef: {apiVersion: v1, kind: PersistentVolumeClaim, namespace: shop, name: NAME, uid: 33333333-0000-0000-0000-000000000NAME}
  csi: {driver: csi.example.com, volumeHandle: NAME}
status: {phase: Bound}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: NAME, namespace: shop, uid: 33333333-0000-0000-0000-000000000NAME, annotations: {pv.kubernetes.io/bind-completed: "yes"}}
spec: {accessModes: [ReadWriteOnce], volumeName: pv-NAME, resources: {requests: {storage: 1Gi}}}
status: {phase: Bound}
`, "NAME", name)
}
