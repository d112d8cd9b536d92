package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// Template is the template of new nodes.
type Template struct {
	// Name is the name of a node of the snapshot, or of Node.
	Name string
	// Node is the manifest of a node. If it is nil, the node of the snapshot is the template.
	Node map[string]any
	// Count is how many nodes to add, First the number of the first one in their names.
	Count, First int
}

// Nodes is the scenario in which nodes are added, and the pending pods are scheduled. A copy of a
// node of the snapshot has its labels, taints and resources, the drivers of its volumes, and copies
// of its pods of DaemonSets and static pods.
func Nodes(templates []Template) (Scenario, error) {
	s := Pending()
	s.Name = "nodes"
	byName := map[string]Template{}
	nodes, version := snapshot.Find(snapshot.Kinds(), "v1", "Node")
	for _, t := range templates {
		if t.Node == nil {
			byName[t.Name] = t
			s.Nodes = append(s.Nodes, t.Name)
			continue
		}
		if len(part(t.Node, "status", "allocatable")) == 0 {
			return s, problem.Invalidf("set status.allocatable, for example {cpu: 8, memory: 32Gi, pods: 110}",
				"node %s has no status.allocatable", t.Name)
		}
		for i := range t.Count {
			s.Objects = append(s.Objects,
				Object{Kind: nodes, Version: version, Fields: newNode(nodes.Strip(t.Node), t.newName(i))})
		}
	}
	s.Nodes = slices.Compact(slices.Sorted(slices.Values(s.Nodes)))
	s.Copies = func(kind *snapshot.Kind, o map[string]any) []map[string]any {
		name, _, _ := unstructured.NestedString(o, "metadata", "name")
		if kind.Name == "Pod" {
			name, _, _ = unstructured.NestedString(o, "spec", "nodeName")
		}
		t, ok := byName[name]
		if !ok {
			return nil
		}
		return t.copies(kind, o)
	}
	return s, nil
}

func (t Template) newName(i int) string { return fmt.Sprintf("%s-new-%d", t.Name, t.First+i) }

// copies returns the copies of an object of the template for the new nodes.
func (t Template) copies(kind *snapshot.Kind, o object) []object {
	var all []object
	for i := range t.Count {
		node := t.newName(i)
		switch kind.GroupResource() {
		case "nodes":
			all = append(all, newNode(o, node))
		case "csinodes.storage.k8s.io":
			all = append(all, renamed(o, node))
		case "pods":
			if isMovable(o) || isGone(o) {
				return nil
			}
			name, _, _ := unstructured.NestedString(o, "metadata", "name")
			pod := renamed(o, fmt.Sprintf("%s-new-%d", name, t.First+i))
			part(pod, "spec")["nodeName"] = node
			all = append(all, pod)
		}
	}
	return all
}

// isGone reports whether a pod has finished or is being deleted.
func isGone(pod object) bool {
	return part(pod, "metadata")["deletionTimestamp"] != nil || IsFinished(pod)
}

// renamed returns a copy of an object with another name.
func renamed(o object, name string) object {
	o = runtime.DeepCopyJSON(o)
	metadata := part(o, "metadata")
	metadata["name"] = name
	maps.DeleteFunc(metadata, func(field string, _ any) bool { return field == "uid" || field == "creationTimestamp" })
	return o
}

// newNode returns a node that has just joined: ready, empty, and without the taints of the
// template's state.
func newNode(template object, name string) object {
	node := renamed(template, name)
	metadata := part(node, "metadata")
	labels := part(metadata, "labels")
	if labels == nil {
		labels = object{}
		metadata["labels"] = labels
	}
	labels["kubernetes.io/hostname"] = name
	spec := specOf(node)
	delete(spec, "unschedulable")
	if taints := list(spec, "taints"); taints != nil {
		spec["taints"] = slices.DeleteFunc(taints, func(t any) bool {
			key, _ := asObject(t)["key"].(string)
			return strings.HasPrefix(key, "node.kubernetes.io/")
		})
	}
	status := part(node, "status")
	if status == nil {
		status = object{}
		node["status"] = status
	}
	if status["capacity"] == nil && status["allocatable"] != nil {
		status["capacity"] = runtime.DeepCopyJSONValue(status["allocatable"])
	}
	delete(status, "images")
	delete(status, "addresses")
	status["conditions"] = []any{object{"type": "Ready", "status": "True"}}
	return node
}
