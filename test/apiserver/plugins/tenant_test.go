//go:build linux && (cases || releases)

package plugins

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/coscheduling"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/costaware"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/elasticquota"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/gpupacking"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/loadaware"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/networkaware"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/numaaware"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Two hostile tenants, who may create pods and the objects of plugins in one namespace each, and
// the agent of one node send generated objects to a scheduler with all plugins. The scheduler
// continues, the limits of all teams hold, no device is given twice, and the pods and gangs of
// other tenants are bound without being rejected or evicted.
//
// Of what any scheduler shares between tenants the test keeps within bounds that an administrator
// sets: each hostile tenant has at most maxHostilePods pods, as with a ResourceQuota of their
// number, few of which are large (etcd limits their sum), a bounded rate of requests, no priority
// above that of the other tenants, no affinity to pods of other namespaces, and no pods that are
// created with a node and overflow its sums ([restrain]).
func TestHostileTenantsHarmNoOne(t *testing.T) {
	for _, release := range siegeReleases() {
		t.Run(release, func(t *testing.T) { withstandsHostileTenants(t, newSubject(t, release)) })
	}
}

// siegeLength is how long the attack takes. `make soak` sets TENANT.
func siegeLength(t *testing.T) time.Duration {
	t.Helper()
	length, err := time.ParseDuration(cmp.Or(os.Getenv("TENANT"), "12s"))
	if err != nil {
		t.Fatalf("TENANT: %v", err)
	}
	return length
}

func siegeReleases() []string {
	if os.Getenv("TENANT") == "" {
		return releases()
	}
	return []string{releases()[0], versions.Releases()[0].String()}
}

// siege is a scheduler with all plugins and the objects of its tenants.
type siege struct {
	*cluster
	seed    uint64
	objects dynamic.Interface
}

// Namespaces of the tenants. The quotas of trudy and research are in the arguments, those of
// mallory and vision are ElasticQuotas; web has none.
const (
	mallory  = "siege-mallory"
	trudy    = "siege-trudy"
	research = "siege-research"
	vision   = "siege-vision"
	web      = "siege-web"
	// rogue is the node whose agent is hostile, without the name of the cluster.
	rogue = "rogue"
	// maxHostilePods is the number of pods of a hostile tenant.
	maxHostilePods = 1000
)

const gpuCount corev1.ResourceName = "example.com/gpu-count"

// siegeMax are the limits of the teams. Those of the hostile tenants leave enough room on the nodes
// for the others, who do not reach theirs.
func siegeMax() map[string]amounts {
	hostile := amounts{"cpu": "4", "memory": "8Gi", gpuMilli: "3000", "pods": "200", "ephemeral-storage": "1Gi"}
	other := amounts{"cpu": "32", "memory": "64Gi", gpuMilli: "8000"}
	return map[string]amounts{mallory: hostile, trudy: hostile, research: other, vision: other}
}

// siegeMin is guaranteed to a team. The pods of the other teams fit into it, so that the pods of
// the hostile ones have no right to their room.
func siegeMin(namespace string) amounts {
	if namespace == mallory || namespace == trudy {
		return amounts{"cpu": "1", "memory": "1Gi", "pods": "10"}
	}
	return siegeMax()[namespace]
}

func withstandsHostileTenants(t *testing.T, s subject) {
	t.Helper()
	x := prepareSiege(t, s)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ledger := newAccounts(siegeMax())
	others := newLoad(x)
	events := controlplane.WatchBound(ctx, t, x.Kube, metav1.NamespaceAll)
	var watching sync.WaitGroup
	watching.Go(func() {
		for event := range events {
			ledger.observe(event)
			others.observe(event)
		}
		if ctx.Err() == nil {
			t.Error("the watch of bound pods has ended")
		}
	})
	defer watching.Wait()
	defer stop()

	x.scheduler.Start()
	run.Eventually(t, "the scheduler serves its metrics", func(ctx context.Context) (bool, string) {
		_, err := controlplane.ReadMetrics(ctx, x.metrics)
		return err == nil, fmt.Sprint(err)
	})
	length := siegeLength(t)
	others.run(t, "alone", length/4)
	process := x.observeProcess(t)
	attack, cease := context.WithCancel(ctx)
	attackers := x.startAttackers(attack, t)
	defer func() { stop(); attackers.Wait() }() // also if a check ends the test
	others.run(t, "with hostile tenants", length)
	process.check(t)
	cease()
	attackers.Wait()
	others.finish(t)
	x.relieve(t)
	x.removeObjects(t)
	process.settle(t)
	others.report(t)
	ledger.report(t)
}

// prepareSiege creates the tenants, the nodes, and the definitions of all objects, and prepares the
// scheduler.
func prepareSiege(t *testing.T, s subject) *siege {
	t.Helper()
	const name = "siege"
	usage := startLoad(t, name+"-0")
	usage.percent.Store(50)
	fixed := fmt.Sprintf(`{quotas: [{name: trudy, namespaces: [%s], min: %s, max: %s}, `+
		`{name: research, namespaces: [%s], min: %s, max: %s}]}`, trudy, flow(siegeMin(trudy)), flow(siegeMax()[trudy]),
		research, flow(siegeMin(research)), flow(siegeMax()[research]))
	x := &siege{cluster: s.prepareAll(t, name, nil,
		enabled{profiles.Plugin{Name: coscheduling.Name}, coscheduling.Rules},
		enabled{profiles.Plugin{Name: elasticquota.Name, Args: []byte(fixed)}, elasticquota.Rules},
		enabled{profiles.Plugin{Name: gpupacking.Name, Args: []byte(`{resource: example.com/gpu-milli, ` +
			`devices: {countResource: example.com/gpu-count}, annotations: {index: example.com/gpu-index}}`)}, gpupacking.Rules},
		enabled{profiles.Plugin{Name: numaaware.Name}, numaaware.Rules},
		enabled{profiles.Plugin{Name: networkaware.Name, Args: []byte(`{group: network.example.com, version: v1alpha1, ` +
			`resource: networkmetrics, field: status.bandwidth, prefer: Higher}`)}, networkaware.Rules},
		enabled{profiles.Plugin{Name: costaware.Name}, costaware.Rules},
		enabled{profiles.Plugin{Name: loadaware.Name, Args: fmt.Appendf(nil,
			`{prometheus: {url: %q}, interval: 200ms, staleAfter: 1m, metrics: [{name: memory}]}`, usage.URL)}, nil},
	), seed: newSeed(t)}
	for _, namespace := range []string{mallory, trudy, research, vision, web} {
		x.Namespace(t.Context(), t, namespace)
		t.Cleanup(func() { x.Clear(t, namespace) })
	}
	t.Cleanup(func() { x.relieve(t) })
	x.PriorityClass(t.Context(), t, "siege-low", -10)
	quotas := x.define(t, "elasticquota", elasticQuotas)
	topologies := x.define(t, "numaaware", nodeTopologies)
	x.define(t, "coscheduling", podGroups)
	x.define(t, "networkaware", networkmetrics)
	for _, namespace := range []string{mallory, vision} {
		create(t.Context(), t, quotas.Namespace(namespace), quotaObject("limit", map[string]any{
			"min": siegeMin(namespace).object(), "max": siegeMax()[namespace].object()}))
	}
	for i := range 5 {
		node := fmt.Sprint(i)
		if i == 4 {
			node = rogue
		}
		x.node(t, node, amounts{"cpu": "64", "memory": "256Gi", "pods": "5000", gpuMilli: "4000", gpuCount: "4"}, nil)
		create(t.Context(), t, topologies, topologyObject(name+"-"+node))
	}
	client, err := dynamic.NewForConfig(x.Config())
	if err != nil {
		t.Fatal(err)
	}
	x.objects = client
	return x
}

// flow returns amounts in YAML's flow style.
func flow(a amounts) string {
	var all []string
	for name, amount := range a {
		all = append(all, string(name)+": "+amount)
	}
	return "{" + strings.Join(all, ", ") + "}"
}

func (a amounts) object() map[string]any {
	all := map[string]any{}
	for name, amount := range a {
		all[string(name)] = amount
	}
	return all
}

func quotaObject(name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1",
		"kind": "ElasticQuota", "metadata": map[string]any{"name": name}, "spec": spec}}
}

// topologyObject is the topology of a node with two zones.
func topologyObject(node string) *unstructured.Unstructured {
	var zones []any
	for i := range 2 {
		var resources []any
		for name, amount := range map[string]string{"cpu": "32", "memory": "128Gi"} {
			resources = append(resources, map[string]any{"name": name, "capacity": amount, "allocatable": amount,
				"available": amount})
		}
		zones = append(zones, map[string]any{"name": fmt.Sprint("node-", i), "type": "Node", "resources": resources})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "topology.node.k8s.io/v1alpha2", "kind": "NodeResourceTopology",
		"metadata":   map[string]any{"name": node},
		"attributes": []any{map[string]any{"name": "topologyManagerPolicy", "value": "single-numa-node"}},
		"zones":      zones,
	}}
}

// relieve deletes the pods of the hostile tenants, also those with finalizers.
func (x *siege) relieve(t *testing.T) {
	t.Helper()
	for _, namespace := range []string{mallory, trudy} {
		run.Eventually(t, "the pods of "+namespace+" are gone", func(ctx context.Context) (bool, string) {
			left, err := x.removeAll(ctx, namespace)
			return err == nil && left == 0, fmt.Sprint(left, err)
		})
	}
}

// removeObjects deletes what the hostile tenants and the hostile agent wrote for plugins, except
// for the quota of the administrator.
func (x *siege) removeObjects(t *testing.T) {
	t.Helper()
	remove := func(objects dynamic.ResourceInterface, fields string) {
		options := metav1.ListOptions{FieldSelector: fields}
		if err := objects.DeleteCollection(t.Context(), metav1.DeleteOptions{}, options); err != nil {
			t.Fatal(err)
		}
	}
	for _, namespace := range []string{mallory, trudy} {
		remove(x.objects.Resource(podGroups).Namespace(namespace), "")
		remove(x.objects.Resource(elasticQuotas).Namespace(namespace), "metadata.name!=limit")
	}
	remove(x.objects.Resource(nodeTopologies), "metadata.name=siege-"+rogue)
}
