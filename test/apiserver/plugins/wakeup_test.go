//go:build linux && releases

package plugins

import (
	"encoding/json"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/elasticquota"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/numaaware"
)

func gpusWake(t *testing.T, s subject) {
	x := startGPUs(t, s, "wake-gpus", 1)
	for _, name := range []string{"one", "two"} { // on a device each
		x.create(t, x.pod(name, amounts{gpuMilli: "600"}))
		x.awaitBound(t, name)
	}
	// In total enough is free for each of the pods, so that no other plugin rejects it and wakes it.
	// That a deleted pod wakes one is shown by sharesOfGPUs.
	x.create(t, x.pod("third", amounts{gpuMilli: "500"}))
	x.awaitRejected(t, "third", noGPU)
	x.wakes(t, "a node has more GPUs", func() { x.allocate(t, "0", amounts{gpuMilli: "3000"}) }, "third")

	x.create(t, x.pod("fourth", amounts{gpuMilli: "600"}))
	x.awaitRejected(t, "fourth", noGPU)
	x.wakes(t, "a node is added and loses its taint", func() {
		// As every new node it has a taint, and its device plugin reports the GPUs before the taint is
		// gone.
		x.taintedNode(t, "new", amounts{gpuMilli: "1000"}, nil)
		x.untaint(t, "new")
	}, "fourth")
}

func quotaWakes(t *testing.T, s subject) {
	x := startQuota(t, s, "wake-quota", 1)
	x.create(t, x.pod("first", amounts{wakeSeats: "1"}))
	x.awaitBound(t, "first")
	x.create(t, x.pod("second", amounts{wakeSeats: "1"}))
	x.awaitRejected(t, "second", "no more than 1 of example.com/wake-seats")
	x.wakes(t, "another pod of the quota is deleted", func() { x.remove(t, "first") }, "second")
}

const wakeSeats corev1.ResourceName = "example.com/wake-seats"

// startQuota starts a scheduler with ElasticQuota, a quota and a node with more seats than that.
func startQuota(t *testing.T, s subject, name string, seats int) *cluster {
	t.Helper()
	x := s.start(t, name, profiles.Plugin{Name: elasticquota.Name, Args: fmt.Appendf(nil,
		`{quotas: [{name: w, namespaces: [%s], max: {%s: %d}}]}`, name, wakeSeats, seats)}, elasticquota.Rules)
	x.node(t, "a", amounts{wakeSeats: "20"}, nil)
	return x
}

func roomWakesGroups(t *testing.T, s subject) {
	x := startGangs(t, s, "wake-gangs", 1, 2)
	x.create(t, x.pod("alone", amounts{slots: "1"}))
	x.awaitBound(t, "alone")
	x.createWith(t, "a", 2, 2, 1)
	x.awaitReason(t, "a", "more than is free")
	x.wakes(t, "another pod is deleted", func() { x.remove(t, "alone") }, "a-0", "a-1")

	x.createWith(t, "b", 2, 2, 1)
	x.awaitReason(t, "b", "more than is free")
	x.wakes(t, "a node has more room", func() { x.allocate(t, "0", amounts{slots: "4"}) }, "b-0", "b-1")
}

func zonesWake(t *testing.T, s subject) {
	x := startZones(t, s, "wake-zones")
	x.create(t, x.pod("first", guaranteed("6")))
	x.awaitBound(t, "first")
	x.create(t, x.pod("second", guaranteed("6")))
	x.awaitRejected(t, "second", noZone)
	x.wakes(t, "another pod is deleted", func() { x.remove(t, "first") }, "second")

	x.create(t, x.pod("third", guaranteed("6")))
	x.awaitRejected(t, "third", noZone)
	x.wakes(t, "the topology shows more room", func() {
		patch, err := json.Marshal(map[string]any{"zones": oneZone(16)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := x.topologies.Patch(t.Context(), x.name+"-a", types.MergePatchType, patch,
			metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}, "third")
}

// noZone is why NUMAAware rejects a pod.
const noZone = "no NUMA node has room for the pod"

// guaranteed are the resources of a pod of the class Guaranteed.
func guaranteed(cpu string) amounts {
	return amounts{corev1.ResourceCPU: cpu, corev1.ResourceMemory: "1Gi"}
}

func oneZone(available int64) []any {
	cpus := map[string]any{"name": "cpu", "capacity": int64(8), "allocatable": int64(8), "available": available}
	return []any{map[string]any{"name": "node-0", "type": "Node", "resources": []any{cpus}}}
}

// zones is a scheduler with NUMAAware, and a node with 32 CPUs, of which a zone has 8.
type zones struct {
	*cluster
	topologies dynamic.NamespaceableResourceInterface
}

func startZones(t *testing.T, s subject, name string) zones {
	t.Helper()
	x := zones{cluster: s.prepare(t, name, profiles.Plugin{Name: numaaware.Name}, numaaware.Rules)}
	x.topologies = x.define(t, "numaaware",
		schema.GroupVersionResource{Group: "topology.node.k8s.io", Version: "v1alpha2", Resource: "noderesourcetopologies"})
	create(t.Context(), t, x.topologies, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "topology.node.k8s.io/v1alpha2", "kind": "NodeResourceTopology",
		"metadata":   map[string]any{"name": name + "-a"},
		"attributes": []any{map[string]any{"name": "topologyManagerPolicy", "value": "single-numa-node"}},
		"zones":      oneZone(8),
	}})
	x.scheduler.Start()
	x.node(t, "a", amounts{corev1.ResourceCPU: "32"}, nil)
	return x
}

// allocate changes how much a node has.
func (x *cluster) allocate(t *testing.T, name string, room amounts) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"allocatable": room.list(),
		"capacity": room.list()}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Kube.CoreV1().Nodes().Patch(t.Context(), x.name+"-"+name, types.MergePatchType, patch,
		metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
}
