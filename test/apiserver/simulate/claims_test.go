//go:build linux && cases

package simulate

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
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

// claimOf returns a StorageClass that waits for a pod, and the claim data of it.
func claimOf(provisioner string) string {
	return `---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: standard}
provisioner: ` + provisioner + `
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: shop}
spec: {accessModes: [ReadWriteOnce], storageClassName: standard, resources: {requests: {storage: 1Gi}}}
`
}

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

// The provisioner of a class need not be a CSI driver. A second pod with the claim follows the
// first one where the volume is, and pods without the claim are placed as always.
func TestVolumesOfEachKindOfProvisioner(t *testing.T) {
	t.Parallel()
	const (
		first  = `creationTimestamp: "2026-01-01T00:00:00Z"`
		second = `creationTimestamp: "2026-01-02T00:00:00Z"`
	)
	for provisioner, followed := range map[string]bool{
		"rancher.io/local-path": true, "local.example.com": true, "kubernetes.io/aws-ebs": false,
	} {
		r := simulatePending(t, node("a", 4, "", "")+node("b", 4, "", "")+claimOf(provisioner)+
			pod("db", "3", first, withClaim("data"), "")+pod("reader", "3", second, withClaim("data"), "")+
			pod("web", "1", second, "", ""))
		on, why := nodesOf(r), reasons(r)["reader"]
		if on["db"] == "" || on["web"] == "" {
			t.Errorf("%s: placements %v, unplaced %v", provisioner, on, reasons(r))
		}
		if followed != strings.Contains(why, "volume node affinity conflict") || !followed && on["reader"] == "" {
			t.Errorf("%s: the second pod is on %q: %s", provisioner, on["reader"], why)
		}
	}
}

// A claim that no driver can provision keeps its pod pending, and no other.
func TestAClaimThatCannotBeProvisionedIsThatOfOnePod(t *testing.T) {
	t.Parallel()
	r := simulatePending(t, node("a", 4, "", "")+csiNode("a")+claimOf("csi.example.com")+
		pod("db", "1", "", withClaim("data"), "")+pod("web", "1", "", "", ""))
	equal(t, "placements", map[string]string{"web": "a"}, nodesOf(r))
	if why := reasons(r)["db"]; !strings.Contains(why, `PVC "data"`) {
		t.Errorf("reason %q", why)
	}
	if notes := strings.Join(r.Notes, "\n"); !strings.Contains(notes, "node a has no label zone") {
		t.Errorf("notes %q", notes)
	}
}

// Volumes are detached from the node of a pod that is evicted or scheduled again, and stay attached
// for others. Schedulers from 1.32 on count attachments.
func TestVolumesOfPodsThatLeaveAreDetached(t *testing.T) {
	t.Parallel()
	attachment := func(claim string) string {
		return "---\napiVersion: storage.k8s.io/v1\nkind: VolumeAttachment\nmetadata: {name: of-" + claim + "}\nspec: {attacher: " +
			"csi.example.com, nodeName: a, source: {persistentVolumeName: pv-" + claim + "}}\nstatus: {attached: true}\n"
	}
	objects := newObjects(t, node("a", 4, "", "")+boundClaim("c-1")+boundClaim("c-2")+boundClaim("c-3")+attachment("c-1")+
		attachment("c-2")+attachment("c-3")+
		pod("low", "3", "", "nodeName: a\npriority: 0\nvolumes: [{name: one, persistentVolumeClaim: {claimName: c-1}}, {name: two, "+
			"persistentVolumeClaim: {claimName: c-2}}]", "phase: Running")+
		pod("daemon", "1", "ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: d, uid: "+
			"11111111-0000-0000-0000-000000000009}]", "nodeName: a\npriority: 10\nvolumes: [{name: one, persistentVolumeClaim: "+
			"{claimName: c-2}}]", "phase: Running")+
		pod("high", "3", "", "priority: 10", ""))
	for name, s := range map[string]scenario.Scenario{
		"evicted": scenario.Pending(), "scheduled again": scenario.ReplaceAll(),
	} {
		var left []string
		withSimulator(t, apiserver.Release, func(sim *simulator) error {
			o := sim.options(t, objects, pack.Scheduler{})
			o.Scenario = s
			o.Observer = whenScheduled{do: func(ctx context.Context, cfg *rest.Config) error {
				kube, err := kubernetes.NewForConfig(cfg)
				if err != nil {
					return err
				}
				list, err := kube.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
				for i := range list.Items {
					left = append(left, list.Items[i].Name)
				}
				return err
			}}
			r, err := sim.server.Run(t.Context(), o)
			if err == nil && nodesOf(*r)["high"] != "a" {
				t.Errorf("%s: placements %v, unplaced %v", name, nodesOf(*r), reasons(*r))
			}
			return err
		})
		equal(t, "attachments of pods that are "+name, []string{"of-c-2", "of-c-3"}, left)
	}
}
