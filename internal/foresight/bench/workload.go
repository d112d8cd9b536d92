package bench

import (
	"fmt"
	"maps"
)

// Workload is the input for a measurement.
type Workload struct {
	Name string
	// Objects are created first: namespaces and nodes.
	Objects []map[string]any
	// Measured are the measured pods.
	Measured []map[string]any
}

// namespace for the pods of alike.
const namespace = "pmk-sched-bench"

// alike returns a workload with identical pods and new nodes, in addition to a snapshot's nodes.
// The pods are small, so that nodes take as many as they allow.
func alike(nodes, pods int) *Workload {
	w := &Workload{Name: fmt.Sprintf("Alike/%dPods", pods)}
	for i := range nodes {
		node := newNode(fmt.Sprintf("bench-%05d", i))
		setLabel(node, "kubernetes.io/hostname", nameOf(node))
		setLabel(node, "topology.kubernetes.io/zone", fmt.Sprintf("zone-%d", i%3))
		w.Objects = append(w.Objects, node)
	}
	for i := range pods {
		pod := newPod("10m", "16Mi")
		pod["metadata"] = map[string]any{"namespace": namespace, "name": fmt.Sprintf("pod-%06d", i),
			"labels": map[string]any{"app": "bench"}}
		w.Measured = append(w.Measured, pod)
	}
	return w
}

// newNode returns a node with the size that scheduler_perf uses (test/utils, and
// node-default.yaml).
func newNode(name string) map[string]any {
	room := map[string]any{"cpu": "4", "memory": "32Gi", "pods": "110"}
	return map[string]any{
		"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": name},
		"status": map[string]any{"capacity": room, "allocatable": maps.Clone(room)},
	}
}

// newPod returns a pod with requests.
func newPod(cpu, memory string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": map[string]any{"containers": []any{map[string]any{
		"name": "pause", "image": "registry.k8s.io/pause:3.10",
		"resources": map[string]any{"requests": map[string]any{"cpu": cpu, "memory": memory}},
	}}}}
}

func metadataOf(o map[string]any) map[string]any {
	metadata, ok := o["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		o["metadata"] = metadata
	}
	return metadata
}

func nameOf(o map[string]any) string {
	name, _ := metadataOf(o)["name"].(string)
	return name
}

func setLabel(o map[string]any, key, value string) {
	metadata := metadataOf(o)
	labels, ok := metadata["labels"].(map[string]any)
	if !ok {
		labels = map[string]any{}
		metadata["labels"] = labels
	}
	labels[key] = value
}
