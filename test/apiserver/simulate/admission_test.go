//go:build linux && cases

package simulate

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

const admissionClasses = `---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: vm}
handler: vm
overhead: {podFixed: {cpu: "1"}}
scheduling: {nodeSelector: {sandbox: vm}}
---
apiVersion: v1
kind: LimitRange
metadata: {name: defaults, namespace: team}
spec: {limits: [{type: Container, default: {cpu: "1"}, max: {cpu: "2"}}]}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: small, namespace: team}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: usual, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: csi.example.com
volumeBindingMode: WaitForFirstConsumer
allowedTopologies: [{matchLabelExpressions: [{key: sandbox, values: [vm]}]}]
`

// What the API server does to new pods: overhead and node selector of a RuntimeClass, the defaults
// and limits of a LimitRange, requests that default to limits, the default StorageClass. A pod that
// it refuses is not created. The pod that runs has its defaults before and after.
func TestTheAPIServerAdmitsManifests(t *testing.T) {
	t.Parallel()
	added := func(namespace, name, resources, more string) string {
		return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", namespace: " + namespace + "}\n" +
			"spec:\n  containers: [{name: main, image: x, resources: {" + resources + "}}]\n  " + more + "\n"
	}
	running := added("shop", "running", "limits: {cpu: 1}", "nodeName: plain") + "status: {phase: Running}\n"
	cluster := strings.ReplaceAll(node("plain", 4, "", "")+node("vm", 4, "sandbox: vm", ""),
		`capacity: {cpu: "4", memory: 8Gi, pods: "110"}, allocatable`, "capacity") + running + admissionClasses
	r := simulateAdd(t, cluster, added("shop", "box", "requests: {cpu: 1}", "runtimeClassName: vm")+
		added("team", "job", "", "")+added("team", "large", "limits: {cpu: 3}", "")+
		added("shop", "limited", "limits: {cpu: 2}", "nodeSelector: {kubernetes.io/hostname: plain}")+
		added("shop", "db", "", withClaim("data"))+"---\napiVersion: v1\nkind: PersistentVolumeClaim\n"+
		"metadata: {name: data, namespace: shop}\nspec: {accessModes: [ReadWriteOnce], "+
		"resources: {requests: {storage: 1Gi}}}\n", 1, 0)
	on := nodesOf(r)
	equal(t, "placements", [4]string{"vm", "plain", "vm", "true"}, [4]string{on["box"], on["limited"], on["db"],
		map[bool]string{true: "true"}[on["job"] != ""]})
	equal(t, "unplaced", map[string]string{
		"large": `not created: pods "large" is forbidden: maximum cpu usage per Container is 2, but limit is 3`}, reasons(r))
	u := r.Summary.Utilization[0]
	equal(t, "allocatable, before and after", [3]any{"8", 0.125, 0.75}, [3]any{u.Allocatable, u.Before, u.After})
	if notes := strings.Join(r.Notes, "\n"); !strings.Contains(notes, "ResourceQuota team/small is not applied") {
		t.Errorf("notes %s", notes)
	}
}

// The priority of a pod is fixed when it is created: it does not follow its class, and a class that
// is gone does not matter. A manifest without a priority gets the priority of its class.
func TestPrioritiesOfCreatedPodsStay(t *testing.T) {
	t.Parallel()
	const classes = "---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: gold}\nvalue: 5\n" +
		"---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: usual}\nvalue: 60\nglobalDefault: true\n"
	r := simulatePending(t, node("a", 4, "", "")+classes+
		pod("old", "3", "", "priorityClassName: gold\npriority: 100", "")+
		pod("gone", "1", "", "priorityClassName: none\npriority: 70", "")+
		pod("new", "1", "", "", "")+pod("gold", "1", "", "priorityClassName: gold", ""))
	equal(t, "placements", map[string]string{"old": "a", "gone": "a"}, nodesOf(r))
	equal(t, "unplaced", 2, len(r.Unplaced))
}

// The first eviction uses up the budget: the second pod evicts a pod of higher priority instead.
func TestBudgetsFollowEvictions(t *testing.T) {
	t.Parallel()
	file := snapshotOf(t, node("a", 2, "", "")+node("b", 2, "", "")+node("c", 2, "", "")+
		pod("web-a", "2", "labels: {app: web}", "nodeName: a", "phase: Running")+
		pod("web-b", "2", "labels: {app: web}", "nodeName: b", "phase: Running")+
		pod("other", "2", "", "nodeName: c\npriority: 5", "phase: Running")+
		"---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web, namespace: shop}\n"+
		"spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}\n"+
		"---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 1000\n")
	high := run.WriteFile(t, "high.yaml", deployment("high", 1, requesting("cpu: 2"), "priorityClassName: high"))
	steps := run.WriteFile(t, "steps.yaml", "apiVersion: pmk-sched.io/v1alpha1\nkind: Scenario\nsteps:\n"+
		strings.Repeat("- {scenario: add, files: ["+high+"], limit: 0}\n", 2))
	r := simulateSnapshot(t, "run", file, steps)
	if len(r.Steps) != 2 || len(r.Steps[0].Evicted) != 1 || len(r.Steps[1].Evicted) != 1 {
		t.Fatalf("steps %+v", r.Steps)
	}
	equal(t, "evicted at first", "web", r.Steps[0].Evicted[0].Name[:3])
	equal(t, "evicted then", "other", r.Steps[1].Evicted[0].Name)
}

// Custom resources of a snapshot are there when the scheduler starts, also in a group of
// Kubernetes, although no definition of them is.
func TestCustomResourcesOfTheSnapshotAreServed(t *testing.T) {
	t.Parallel()
	manifests := node("a", 4, "", "") + pod("web", "1", "", "", "") +
		"---\napiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\nmetadata: {name: rank, namespace: shop}\n" +
		"spec: {minMember: 2}\n" +
		"---\napiVersion: topology.node.k8s.io/v1alpha2\nkind: NodeResourceTopology\nmetadata: {name: a}\n" +
		"zones: [{name: node-0, type: Node, resources: [{name: cpu, capacity: 2, allocatable: 2, available: 1}]}]\n"
	withSimulator(t, apiserver.Release, func(s *simulator) error {
		o := s.options(t, newObjects(t, manifests), pack.Scheduler{})
		o.Scenario = scenario.Pending()
		o.Observer = whenLoaded{do: func(ctx context.Context, cfg *rest.Config) error {
			client, err := dynamic.NewForConfig(cfg)
			if err != nil {
				return err
			}
			group, err := client.Resource(schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1",
				Resource: "podgroups"}).Namespace("shop").Get(ctx, "rank", metav1.GetOptions{})
			if err != nil {
				return err
			}
			equal(t, "specification", any(map[string]any{"minMember": int64(2)}), group.Object["spec"])
			topology, err := client.Resource(schema.GroupVersionResource{Group: "topology.node.k8s.io", Version: "v1alpha2",
				Resource: "noderesourcetopologies"}).Get(ctx, "a", metav1.GetOptions{})
			if err != nil {
				return err
			}
			equal(t, "zones", 1, len(topology.Object["zones"].([]any)))
			return nil
		}}
		r, err := s.server.Run(t.Context(), o)
		if err == nil {
			equal(t, "placements", map[string]string{"web": "a"}, nodesOf(*r))
		}
		return err
	})
}
