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

// Template is the template for new nodes.
type Template struct {
	// Name is the name of a node in the snapshot, or of Node.
	Name string
	// Node is a node's manifest. If it is nil, the snapshot's node is the template.
	Node map[string]any
	// Count is the number of nodes to add, First the number in the first node's name.
	Count, First int

	// objects are the snapshot's node, its volumes' drivers, its pods that new nodes have too, and
	// storage capacity for it alone. own are its labels whose values no other node has.
	objects []Object
	own     map[string]string
}

// Nodes is the scenario in which nodes are added, and the pending pods are scheduled. When a
// snapshot's node is copied, the copy has its labels, taints and resources, its volumes' drivers,
// and copies of its DaemonSet pods and static pods. Labels that name the node name the copy.
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
		if len(part(t.Node, "status", "allocatable"))+len(part(t.Node, "status", "capacity")) == 0 {
			return s, problem.Invalidf("set status.allocatable, for example {cpu: 8, memory: 32Gi, pods: 110}",
				"node %s has no status.allocatable", t.Name)
		}
		for i := range t.Count {
			s.Objects = append(s.Objects,
				Object{Kind: nodes, Version: version, Fields: newNode(nodes.Strip(t.Node), t.newName(i))})
		}
	}
	s.Nodes = slices.Compact(slices.Sorted(slices.Values(s.Nodes)))
	s.IsTemplate = func(kind *snapshot.Kind, o map[string]any) bool {
		_, ok := byName[nodeOf(kind, o)]
		return ok || len(byName) > 0 && kind.Resource == capacities
	}
	s.Copies = func(originals []Object) (copies []Object, notes []string) {
		for _, name := range s.Nodes {
			t := byName[name]
			t.originals(originals)
			copies, notes = append(copies, t.copies()...), append(notes, t.notes()...)
		}
		return copies, notes
	}
	return s, nil
}

// hostname is the label with a node's name.
const hostname = "kubernetes.io/hostname"

// capacities are the objects with the storage's free capacity. A driver may have one for each node.
const capacities = "csistoragecapacities"

// nodeOf returns the name of the node that an object belongs to.
func nodeOf(kind *snapshot.Kind, o object) (name string) {
	switch kind.GroupResource() {
	case "nodes", "csinodes.storage.k8s.io":
		name, _, _ = unstructured.NestedString(o, "metadata", "name")
	case "pods":
		name = NodeOf(o)
	}
	return name
}

func (t *Template) newName(i int) string { return fmt.Sprintf("%s-new-%d", t.Name, t.First+i) }

// originals finds the template's objects among others.
func (t *Template) originals(all []Object) {
	t.objects, t.own = nil, map[string]string{}
	names, keys := map[string]bool{t.Name: true}, map[string]bool{hostname: true}
	var labels object
	for _, o := range all {
		if nodeOf(o.Kind, o.Fields) != t.Name {
			continue
		}
		switch o.Kind.Name {
		case "Node":
			labels = part(o.Fields, "metadata", "labels")
			if value, _ := labels[hostname].(string); value != "" {
				names[value] = true
			}
			for _, address := range list(o.Fields, "status", "addresses") {
				if value, _ := asObject(address)["address"].(string); value != "" {
					names[value] = true
				}
			}
		case "CSINode":
			for _, driver := range list(o.Fields, "spec", "drivers") {
				for _, key := range list(asObject(driver), "topologyKeys") {
					keys[fmt.Sprint(key)] = true
				}
			}
		case "Pod":
			if isMovable(o.Fields) || isGone(o.Fields) {
				continue
			}
		}
		t.objects = append(t.objects, o)
	}
	for key := range keys {
		if value, _ := labels[key].(string); names[value] && !isArea(key) {
			t.own[key] = value
		}
	}
	for _, o := range all {
		if o.Kind.Resource == capacities && t.isOwn(o.Fields) {
			t.objects = append(t.objects, o)
		}
	}
}

// isArea reports whether a label is a node's zone or region, even if it has the same value as the
// node's name.
func isArea(key string) bool {
	return strings.HasSuffix(key, "zone") || strings.HasSuffix(key, "region")
}

// isOwn reports whether storage capacity is for the template alone.
func (t *Template) isOwn(capacity object) bool {
	for key, value := range part(capacity, "nodeTopology", "matchLabels") {
		if own, ok := t.own[key]; ok && own == value {
			return true
		}
	}
	return false
}

// copies returns the template's objects for the new nodes.
func (t *Template) copies() (all []Object) {
	for i := range t.Count {
		node := t.newName(i)
		for _, o := range t.objects {
			var c object
			name, _, _ := unstructured.NestedString(o.Fields, "metadata", "name")
			switch o.Kind.Name {
			case "Node":
				c = newNode(o.Fields, node)
				for key := range t.own {
					part(c, "metadata", "labels")[key] = node
				}
			case "CSINode":
				c = renamed(o.Fields, node)
			case "Pod":
				c = renamed(o.Fields, fmt.Sprintf("%s-new-%d", name, t.First+i))
				part(c, "spec")["nodeName"] = node
			default:
				c = renamed(o.Fields, fmt.Sprintf("%s-new-%d", name, t.First+i))
				for key, value := range part(c, "nodeTopology", "matchLabels") {
					if own, ok := t.own[key]; ok && own == value {
						part(c, "nodeTopology", "matchLabels")[key] = node
					}
				}
			}
			all = append(all, Object{Kind: o.Kind, Version: o.Version, Fields: c})
		}
	}
	return all
}

// notes returns a note on the taints that the new nodes do not have.
func (t *Template) notes() []string {
	var keys []string
	for _, o := range t.objects {
		if o.Kind.Name != "Node" {
			continue
		}
		for _, taint := range list(o.Fields, "spec", "taints") {
			if key, _ := asObject(taint)["key"].(string); isState(key) {
				keys = append(keys, key)
			}
		}
	}
	if len(keys) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("new nodes like %s do not have its taints %s: a node has them before it is ready or before it is "+
		"removed", t.Name, strings.Join(keys, ", "))}
}

// isState reports whether a taint is for the time before a node is ready, while it is unhealthy, or
// before it is removed. Autoscalers leave the same ones out of their templates (SanitizeTaints in
// cluster-autoscaler/utils/taints; startup and disruption taints in Karpenter).
func isState(key string) bool {
	switch key {
	case "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", "node.kubernetes.io/unschedulable",
		"node.kubernetes.io/memory-pressure", "node.kubernetes.io/disk-pressure", "node.kubernetes.io/pid-pressure",
		"node.kubernetes.io/network-unavailable", "node.kubernetes.io/out-of-service",
		"node.cloudprovider.kubernetes.io/shutdown", "node.cluster.x-k8s.io/outdated-revision",
		"ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler",
		"karpenter.sh/disrupted", "karpenter.sh/disruption",
		"cloud.google.com/impending-node-termination", "NodeWithImpairedVolumes":
		return true
	}
	prefix, name, _ := strings.Cut(key, "/")
	switch prefix {
	case "startup-taint.cluster-autoscaler.kubernetes.io", "ignore-taint.cluster-autoscaler.kubernetes.io",
		"status-taint.cluster-autoscaler.kubernetes.io", "aws-node-termination-handler", "readiness.k8s.io":
		return true
	}
	// Node agents remove a taint such as node.cilium.io/agent-not-ready when they have started.
	return strings.HasSuffix(name, "not-ready") || name == "uninitialized" || name == "unregistered"
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

// newNode returns a node that has just become ready, is empty, and does not have the template's
// taints that show a state.
func newNode(template object, name string) object {
	node := renamed(template, name)
	metadata := part(node, "metadata")
	labels := part(metadata, "labels")
	if labels == nil {
		labels = object{}
		metadata["labels"] = labels
	}
	labels[hostname] = name
	spec := specOf(node)
	delete(spec, "unschedulable")
	if taints := list(spec, "taints"); taints != nil {
		spec["taints"] = slices.DeleteFunc(taints, func(t any) bool {
			key, _ := asObject(t)["key"].(string)
			return isState(key)
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
