//go:build linux && releases

package simulate

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Each pod goes to the same node in a simulation and for real, and the same pods get none. Except
// for the first case, no two nodes are equally good for a pod, so that all pods are created at
// once, and any difference is a fault.
func TestSimulationsAgreeWithRealSchedulers(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		of   func(t *testing.T, release versions.Release) *faithful
	}{
		{"default scheduler", func(*testing.T, versions.Release) *faithful { return tenShapes() }},
		{"no ties", func(_ *testing.T, r versions.Release) *faithful {
			f := tenShapes()
			f.configuration, f.ties = withoutTies(r, "", ""), false
			return f
		}},
		{"portable and native plugin", withPlugins},
		{"extender", withExtenders},
		{"volumes with zones", withVolumes},
		{"preemption", withPreemption},
		{"topology spread", withSpread},
	}
	for _, name := range []string{apiserver.Release, "v1.20.15", "v1.29.2", versions.Releases()[0].String()} {
		release, err := versions.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			for _, tc := range cases {
				t.Run(tc.name, func(t *testing.T) { tc.of(t, release).agrees(t, name) })
			}
		})
	}
}

// withoutTies configures a scheduler for [shopCluster], see [controlplane.WithoutTies].
func withoutTies(release versions.Release, filter, score string) string {
	nodes := make([]string, shopNodes)
	for i := range nodes {
		nodes[i] = shopNode(i)
	}
	return controlplane.WithoutTies(release, nodes, filter, score)
}

// withPlugins has a portable plugin that prefers cheap nodes, and a native one that refuses old
// nodes.
func withPlugins(t *testing.T, release versions.Release) *faithful {
	f := &faithful{
		cluster: shopCluster(), with: []string{portablePlugin(t), nativePlugin(t, release)}, pods: 60, unplaced: 0,
		added: deployment("cheap", 30, requesting("cpu: 500m, memory: 512Mi"), "") +
			strings.Replace(deployment("new", 30, requesting("cpu: 700m, memory: 256Mi"), ""), "labels: {app: new}",
				`labels: {app: new, generation: "2"}`, 1),
	}
	f.configuration = withoutTies(release, "{name: Generations}",
		"{name: CheapNodes, weight: 300}, {name: Generations, weight: 200}")
	return f
}

// portablePlugin copies an example into a new module.
func portablePlugin(t *testing.T) (dir string) {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(run.Root(), "examples", "cheapnodes", "cheapnodes.go"))
	if err != nil {
		t.Fatal(err)
	}
	return writeModule(t,
		map[string]string{
			"go.mod":        "module example.com/cheapnodes\n\ngo 1.15\n\nrequire github.com/pmk-sched/pmk-sched v0.0.0\n",
			"cheapnodes.go": string(source)})
}

// writeModule writes the files of a module.
func writeModule(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// nativePlugin writes a module with a plugin for the framework of a release, which compares a label
// of pods and nodes, and prefers old nodes.
func nativePlugin(t *testing.T, release versions.Release) (dir string) {
	t.Helper()
	const source = `// Package generations keeps pods off nodes that are too old for them.
package generations

import (
	"context"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"FRAMEWORK"
)

// Name is the name of the plugin.
const Name = "Generations"

// Generations compares the generations of pods and nodes.
type Generations struct{ handle framework.Handle }

// New makes the plugin.
func New(CONTEXT_ runtime.Object, handle framework.Handle) (framework.Plugin, error) {
	return &Generations{handle: handle}, nil
}

// Name returns the name.
func (*Generations) Name() string { return Name }

func generation(labels map[string]string, key string) int64 {
	n, _ := strconv.ParseInt(labels[key], 10, 64)
	return n
}

// Filter refuses nodes that are too old.
func (*Generations) Filter(_ context.Context, _ STATE, pod *corev1.Pod, node NODE) *framework.Status {
	if generation(node.Node().Labels, "example.com/generation") < generation(pod.Labels, "generation") {
		return framework.NewStatus(framework.UnschedulableAndUnresolvable, "node is too old")
	}
	return nil
}

// Score prefers old nodes.
func (g *Generations) Score(_ context.Context, _ STATE, _ *corev1.Pod, SCORED) (int64, *framework.Status) {
	GET
	return 100 - 20*generation(node.Node().Labels, "example.com/generation"), nil
}

// ScoreExtensions returns nothing: the scores need not be normalized.
func (*Generations) ScoreExtensions() framework.ScoreExtensions { return nil }
`
	replaced := []string{
		"FRAMEWORK", "k8s.io/kubernetes/pkg/scheduler/framework", "STATE", "*framework.CycleState", "NODE",
		"*framework.NodeInfo", "SCORED", "name string",
		"GET",
		"node, err := g.handle.SnapshotSharedLister().NodeInfos().Get(name)\n\tif err != nil {\n\t\treturn 0, " +
			"framework.AsStatus(err)\n\t}",
	}
	if release.Minor >= 35 { // the types moved
		replaced = []string{
			"FRAMEWORK", "k8s.io/kube-scheduler/framework", "STATE", "framework.CycleState", "NODE", "framework.NodeInfo",
			"SCORED", "node framework.NodeInfo", "GET\n", "",
		}
	}
	ctx := ""
	if release.Minor >= 29 {
		ctx = "_ context.Context, "
	}
	text := strings.NewReplacer(append(replaced, "CONTEXT", ctx)...).Replace(source)
	return writeModule(t, map[string]string{
		"go.mod":         "module example.com/generations\n\ngo 1.15\n\nrequire k8s.io/kubernetes " + release.String() + "\n",
		"generations.go": text,
	})
}

// withExtenders has two extenders: each refuses a node and prefers another.
func withExtenders(t *testing.T, release versions.Release) *faithful {
	const extenders = `extenders:
- {urlPrefix: %q, filterVerb: filter, prioritizeVerb: prioritize, weight: 20, nodeCacheCapable: true}
- {urlPrefix: %q, filterVerb: filter, prioritizeVerb: prioritize, weight: 10, nodeCacheCapable: true}
`
	f := tenShapes()
	f.unplaced++ // only 19 nodes are left for 20 pods with a host port
	f.ties, f.configuration = false, fmt.Sprintf(extenders, extender(t, shopNode(1), shopNode(9)),
		extender(t, shopNode(4), shopNode(13)))+withoutTies(release, "", "")
	return f
}

// withVolumes has a class that provisions in two of the three zones, drivers that attach at most
// two volumes to a node, local volumes of different sizes, and a volume in the third zone that a
// pod uses.
func withVolumes(_ *testing.T, release versions.Release) *faithful {
	var cluster strings.Builder
	cluster.WriteString(shopCluster() + `---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: zonal}
provisioner: csi.example.com
volumeBindingMode: WaitForFirstConsumer
allowedTopologies: [{matchLabelExpressions: [{key: ` + zoneLabel + `, values: [a, b]}]}]
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: local}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: old, namespace: shop, annotations: {pv.kubernetes.io/bind-completed: "yes"}}
spec: {accessModes: [ReadWriteOnce], storageClassName: zonal, volumeName: old, resources: {requests: {storage: 1Gi}}}
status: {phase: Bound}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: old}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: zonal
  claimRef: {apiVersion: v1, kind: PersistentVolumeClaim, namespace: shop, name: old}
  csi: {driver: csi.example.com, volumeHandle: old}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: ` + zoneLabel + `, operator: In, values: [c]}]}]}}
status: {phase: Bound}
`)
	for i := range shopNodes {
		fmt.Fprintf(&cluster,
			"---\napiVersion: storage.k8s.io/v1\nkind: CSINode\nmetadata: {name: %s}\nspec: {drivers: [{name: "+
				"csi.example.com, nodeID: x, topologyKeys: [%s], allocatable: {count: 2}}]}\n", shopNode(i), zoneLabel)
	}
	for size, node := range map[int]string{10: shopNode(0), 20: shopNode(2), 30: shopNode(2), 40: shopNode(3),
		50: shopNode(8)} {
		fmt.Fprintf(&cluster, `---
apiVersion: v1
kind: PersistentVolume
metadata: {name: local-%[1]d}
spec:
  capacity: {storage: %[1]dGi}
  accessModes: [ReadWriteOnce]
  storageClassName: local
  local: {path: /data}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [%[2]s]}]}]}}
status: {phase: Available}
`, size, node)
	}
	added := "---\napiVersion: v1\nkind: Pod\nmetadata: {name: fixed, namespace: shop}\nspec: {containers: [" +
		requesting("cpu: 1") + "], " + withClaim("old") + "}\n" +
		statefulSet("db", 24, "zonal", "1Gi") + statefulSet("log", 6, "local", "15Gi") + deployment("web", 20,
		requesting("cpu: 300m"), "")

	return &faithful{cluster: cluster.String(), added: added, configuration: withoutTies(release, "", ""), pods: 51,
		unplaced: 2}
}

func statefulSet(name string, replicas int, class, size string) string {
	return fmt.Sprintf(`---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: %[1]s, namespace: shop}
spec:
  serviceName: %[1]s
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: main, image: web, resources: {requests: {cpu: 200m}}}]}
  volumeClaimTemplates:
  - {metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], storageClassName: %[3]s, resources: {requests: {storage: %[4]s}}}}
`, name, replicas, class, size)
}

// withPreemption has full nodes, and pods of a high priority. The scheduler evicts the victims on
// the node whose most important victim has the lowest priority, and of equal nodes the victims that
// started last; a budget protects the pods with the lowest priority. Pods that may not evict others
// get no node.
func withPreemption(_ *testing.T, release versions.Release) *faithful {
	var cluster strings.Builder
	cluster.WriteString(shopNamespace)
	class := func(name string, value int, policy string) {
		fmt.Fprintf(&cluster,
			"---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: %s}\nvalue: %d\npreemptionPolicy: "+
				"%s\n", name, value, policy)
	}
	class("fixed", 1000, "PreemptLowerPriority")
	class("urgent", 500, "PreemptLowerPriority")
	class("patient", 400, "Never")
	for value := range 20 {
		class(fmt.Sprintf("low-%d", value), value, "PreemptLowerPriority")
	}
	policy := "policy/v1"
	if release.Minor < 21 {
		policy = "policy/v1beta1"
	}
	cluster.WriteString("---\napiVersion: " + policy +
		"\nkind: PodDisruptionBudget\nmetadata: {name: guard, namespace: shop}\nspec: {minAvailable: 100%, selector: " +
		"{matchLabels: {app: guarded}}}\n")
	for i, priorities := range [][]int{{1}, {2}, {12}, {13}, {14}, {15}, {15}, {5, 6, 7}, {16}} {
		name, app := shopNode(i), "low"
		if i < 2 {
			app = "guarded"
		}
		cluster.WriteString(readyNode(name, zoneLabel+": a", "", `cpu: "4", memory: 8Gi, pods: "110"`, ""))
		cluster.WriteString(runningPod("fixed-"+name, "fixed", name, "cpu: 1", "priorityClassName: fixed"))
		for n, priority := range priorities {
			low := runningPod(fmt.Sprintf("low-%s-%d", name, n), app, name, fmt.Sprintf("cpu: %dm", 3000/len(priorities)),
				fmt.Sprintf("priorityClassName: low-%d", priority))
			cluster.WriteString(strings.Replace(low, "2026-01-01", fmt.Sprintf("2026-01-%02d", 1+i), 1))
		}
	}
	added := deployment("urgent", 5, requesting("cpu: 3"), "priorityClassName: urgent") + deployment("patient", 3,
		requesting("cpu: 3"), "priorityClassName: patient") +
		deployment("tiny", 4, requesting("cpu: 100m"), "")
	// The nodes 7, 2, 3, 4 and 6 are cleared.
	return &faithful{cluster: cluster.String(), added: added, pods: 12, unplaced: 7, evicted: 7}
}

// withSpread has pods that must be even over the zones or the nodes, with pods that run already and
// little room in one zone, and pods that are spread by default because a Service selects them.
func withSpread(_ *testing.T, release versions.Release) *faithful {
	const constraint = "{maxSkew: %d, topologyKey: %s, whenUnsatisfiable: %s, labelSelector: {matchLabels: {app: %s}}}"
	zones := "topologySpreadConstraints: [" + fmt.Sprintf(constraint, 2, zoneLabel, "DoNotSchedule", "web") + ", " +
		fmt.Sprintf(constraint, 1, "kubernetes.io/hostname", "ScheduleAnyway", "web") + "]"
	hosts := "topologySpreadConstraints: [" + fmt.Sprintf(constraint, 1, "kubernetes.io/hostname", "DoNotSchedule",
		"api") + "]"
	added := "---\napiVersion: v1\nkind: Service\nmetadata: {name: shop, namespace: shop}\nspec: {selector: {app: " +
		"shop}, ports: [{port: 80}]}\n" +
		deployment("web", 30, requesting("cpu: 200m"), zones) + deployment("api", 30, requesting("cpu: 100m"), hosts) +
		deployment("shop", 30, requesting("cpu: 150m"), "")
	return &faithful{cluster: shopCluster(), added: added, configuration: withoutTies(release, "", ""), pods: 90,
		unplaced: 9}
}
