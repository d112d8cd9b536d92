//go:build linux && (cases || releases)

package simulate

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/decision"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// The weight that is suggested for a node makes it win, and the one below does not.
func TestSuggestedWeightIsTheSmallestThatWins(t *testing.T) {
	t.Parallel()
	for weight, want := range map[int]string{14: "small", 15: "large"} {
		config := fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
profiles:
- plugins: {score: {disabled: [{name: NodeResourcesFit}], enabled: [{name: NodeResourcesFit, weight: %d}]}}
`, weight)
		if r := explained(t, exactCluster(), apiserver.Release, "",
			pack.Scheduler{Configuration: profiles.Request{Source: []byte(config)}}); r.Node != want {
			t.Errorf("weight %d: the scheduler selects %s, want %s", weight, r.Node, want)
		}
	}
}

// Up to 1.28, kube-scheduler counts the nodes that have an image when it adds a node to its cache.
// Of nodes that all have the image, only the last one would get the full score: the position of the
// image's size between 23 and 1000 MiB, in percent.
func TestNodesWithTheSameImageHaveTheSameScore(t *testing.T) {
	t.Parallel()
	manifests := pod("web", "1", "", "", "phase: Pending")
	for _, name := range []string{"a", "b", "c", "d"} {
		manifests += readyNode(name, "", "", `cpu: "4", memory: 8Gi, pods: "110"`,
			`images: [{names: ["shop/web:1"], sizeBytes: 600000000}]`)
	}
	r := explained(t, manifests, apiserver.Release, "", pack.Scheduler{})
	for _, name := range []string{"a", "b", "c", "d"} {
		if got := scored(r, name)["ImageLocality"]; got != 56 {
			t.Errorf("node %s: ImageLocality scores %d, want 56", name, got)
		}
	}
}

func TestExtendersRefuseAndScore(t *testing.T) {
	t.Parallel()
	first, second := extender(t, "a", "c"), extender(t, "b", "d")
	config := run.WriteFile(t, "scheduler.yaml", fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
extenders:
- {urlPrefix: %q, filterVerb: filter, prioritizeVerb: prioritize, weight: 2, nodeCacheCapable: true}
- {urlPrefix: %q, filterVerb: filter, prioritizeVerb: prioritize, weight: 3, nodeCacheCapable: true}
`, first, second))
	manifests := ""
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		manifests += node(name, 4, "", "")
	}
	r := explainExactly(t, manifests+pod("web", "1", "", "", ""), "--config", config, "--node", "c")
	equal(t, "refused nodes", map[string][]string{"a": {first}, "b": {second}}, refused(r))
	c, d, e := scored(r, "c"), scored(r, "d"), scored(r, "e")
	equal(t, "node", "d", r.Node)
	equal(t, "scores of the first extender for c, and more in total", [2]int64{200, 200},
		[2]int64{c[first], c["total"] - e["total"]})
	equal(t, "scores of the second extender for d, and more in total", [2]int64{300, 300},
		[2]int64{d[second], d["total"] - e["total"]})
	changes := map[string]int64{}
	for _, c := range r.Chosen.Changes {
		changes[c.By] = c.To
	}
	equal(t, "changes", map[string]int64{first: 4, second: 1}, changes)
}

// A pod that fits nowhere is refused by plugins; one with a priority evicts another.
func TestPodsThatFitNowhereAreExplained(t *testing.T) {
	t.Parallel()
	manifests := node("a", 4, "", "") + node("b", 4, "", "taints: [{key: team, value: x, effect: NoSchedule}]") +
		pod("low", "3", "", "nodeName: a\npriority: 0", "phase: Running")
	r := explained(t, manifests+storage+pod("web", "1", "", withClaim("missing"), ""), apiserver.Release, "a",
		pack.Scheduler{})
	equal(t, "node", "", r.Node)
	equal(t, "outcome", decision.Refused, r.Chosen.Outcome)
	if !strings.Contains(r.Message, `"missing" not found`) {
		t.Errorf("message %q", r.Message)
	}
	// The plugins that count volumes refuse a missing claim as well.
	if by := refused(r); !slices.Contains(by["a"], "VolumeBinding") || slices.Contains(by["a"], "TaintToleration") ||
		by["b"][0] != "TaintToleration" {
		t.Errorf("refused nodes %v", by)
	}
	r = explainExactly(t, manifests+pod("web", "3", "", "priority: 0", ""), "--node", "b")
	equal(t, "node", "", r.Node)
	equal(t, "outcome", decision.Refused, r.Chosen.Outcome)
	if f := r.Chosen.Fixes; len(f) != 1 || f[0].By != "TaintToleration" ||
		!strings.Contains(f[0].Fix, "toleration of team=x:NoSchedule") {
		t.Errorf("fixes %+v", f)
	}
	r = explained(t, manifests+pod("web", "2", "", "priority: 100", ""), apiserver.Release, "", pack.Scheduler{})
	equal(t, "node", "a", r.Node)
	equal(t, "evicted pods", []string{"shop/low"}, r.Evicted)
	equal(t, "refused nodes", map[string][]string{"a": {"NodeResourcesFit"}, "b": {"TaintToleration"}}, refused(r))
}

// The pod owns the claim of its ephemeral volume, which can be created only after it. Plugins must
// not see the pod before.
func TestEphemeralVolumesAreExaminedWithTheirClaims(t *testing.T) {
	t.Parallel()
	examinesEphemeralVolumes(t, apiserver.Release)
}

// A pod that has a node is scheduled again without it, with the room that it has; the table fits a
// terminal.
func TestRunningPodIsScheduledAgain(t *testing.T) {
	t.Parallel()
	manifests := node("small", 4, "", "") + node("large", 8, "", "") + pod("web", "3", "", "nodeName: small",
		"phase: Running") + pod("done", "1", "", "nodeName: small", "phase: Succeeded")
	file := snapshotOf(t, manifests)
	args := []string{"explain", "--exact", "--snapshot", file, "--branch", apiserver.Release, "-n", "shop"}
	run.PMKSched(t, append(args, "--node", "small", "web")...).OK(t).Prints(t,
		"pod shop/web goes to node large", "it is on node small now", "2 nodes, 0 refused, 2 scored", "node small lacks",
		"no weight of one plugin alone makes small win")
	run.PMKSched(t, append(args, "--node", "none", "web")...).Fails(t, 2, "the snapshot has no node none")
	run.PMKSched(t, "explain", "--node", "small", "web").Fails(t, 2, "--node needs --exact")
	withSimulator(t, apiserver.Release, func(sim *simulator) error {
		o := sim.options(t, newObjects(t, manifests), pack.Scheduler{})
		_, err := decision.Observe(t.Context(), sim.server, o, "shop", "done", "", true)
		if want := "the snapshot has no pod done in namespace shop to schedule"; !problem.IsInvalid(err) || err.Error() != want {
			t.Errorf("a pod that has ended: %v", err)
		}
		return nil
	})
}

// explainExactly runs `pmk-sched explain --exact` for the pod web of manifests. Tests without fixes
// need no command: they use [explained].
func explainExactly(t *testing.T, manifests string, args ...string) decision.Result {
	t.Helper()
	args = append([]string{"explain", "--exact", "--snapshot", snapshotOf(t, manifests), "--branch", apiserver.Release,
		"-n", "shop", "-o", "json"}, args...)
	return run.Decode[decision.Result](t, run.PMKSched(t, append(args, "web")...).OK(t).Stdout)
}

// scratch is a StorageClass with volumes in zone a, the claim of the ephemeral volume of pod web,
// and a CSINode: node full can attach no volume.
const scratch = `---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: scratch}
provisioner: csi.example.com
volumeBindingMode: WaitForFirstConsumer
allowedTopologies: [{matchLabelExpressions: [{key: zone, values: [a]}]}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: web-scratch
  namespace: shop
  ownerReferences: [{apiVersion: v1, kind: Pod, name: web, uid: 22222222-0000-0000-0000-000000000001, controller: true}]
spec: {accessModes: [ReadWriteOnce], storageClassName: scratch, resources: {requests: {storage: 1Gi}}}
status: {phase: Pending}
---
apiVersion: storage.k8s.io/v1
kind: CSINode
metadata: {name: full}
spec: {drivers: [{name: csi.example.com, nodeID: full, topologyKeys: [zone], allocatable: {count: 0}}]}
`

func examinesEphemeralVolumes(t *testing.T, release string) {
	t.Helper()
	manifests := node("near", 4, "zone: a", "") + node("far", 4, "zone: b", "") + node("full", 4, "zone: a", "") +
		csiNode("near") + csiNode("far") + scratch +
		pod("web", "1", "uid: 22222222-0000-0000-0000-000000000001", `volumes:
- name: scratch
  ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], storageClassName: scratch, resources: {requests: {storage: 1Gi}}}}}`, "phase: Pending")
	r := explained(t, manifests, release, "", pack.Scheduler{})
	if diff := cmp.Diff(map[string][]string{"far": {"VolumeBinding"}, "full": {"NodeVolumeLimits"}},
		refused(r)); diff != "" {
		t.Errorf("refused nodes (-want +got):\n%s\n%+v", diff, r.Refusals)
	}
	equal(t, "node", "near", r.Node)
	equal(t, "notes", 0, len(r.Notes))
}
