//go:build linux

package simulate

import (
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
)

// zonedVolume is a volume in zone a, bound to the claim of the ephemeral volume of the running pod
// web.
const zonedVolume = `---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: scratch}
provisioner: csi.example.com
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: web-scratch
  namespace: shop
  uid: 22222222-0000-0000-0000-000000000002
  annotations: {pv.kubernetes.io/bind-completed: "yes", volume.kubernetes.io/selected-node: near}
  ownerReferences: [{apiVersion: v1, kind: Pod, name: web, uid: 22222222-0000-0000-0000-000000000001, controller: true}]
spec: {accessModes: [ReadWriteOnce], storageClassName: scratch, volumeName: pv, resources: {requests: {storage: 1Gi}}}
status: {phase: Bound, accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv}
spec:
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Gi}
  storageClassName: scratch
  claimRef: {apiVersion: v1, kind: PersistentVolumeClaim, namespace: shop, name: web-scratch, uid: 22222222-0000-0000-0000-000000000002}
  csi: {driver: csi.example.com, volumeHandle: x}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [a]}]}]}}
status: {phase: Bound}
`

// The pod that replaces a drained one has a new ephemeral volume.
func TestDrainedPodDoesNotKeepTheZoneOfItsEphemeralVolume(t *testing.T) {
	t.Parallel()
	manifests := node("near", 4, "zone: a", "") + node("far", 4, "zone: b", "") + csiNode("near") + csiNode("far") +
		zonedVolume + pod("web", "1", "uid: 22222222-0000-0000-0000-000000000001", `nodeName: near
volumes:
- name: scratch
  ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], storageClassName: scratch, resources: {requests: {storage: 1Gi}}}}}`,
		"phase: Running")
	r := simulated(t, scenario.Drain([]string{"near"}), manifests, pack.Scheduler{})
	if got := nodesOf(r)["web"]; got != "far" {
		t.Errorf("the pod is on %q: %v", got, reasons(r))
	}
}
