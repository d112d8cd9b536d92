// Package scenario decides how a simulation treats the objects in a snapshot: which pods it
// schedules, in which order, and how an object without the fields that no scheduler reads is
// created on an API server.
//
// The package does no I/O.
package scenario

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// object is a Kubernetes object as decoded JSON.
type object = map[string]any

// Action is a simulation's treatment of an object in a snapshot.
type Action int

// Actions.
const (
	// Keep creates the object: a pod on its node, finished, or being deleted.
	Keep Action = iota
	// Schedule creates a pod without a node, after the scheduler has started.
	Schedule
	// Leave creates a pending pod that the scheduler ignores.
	Leave
	// Drop does not create the object.
	Drop
)

// Scenario changes the objects in a snapshot before they are loaded.
type Scenario struct {
	// Name is the command's name, such as pending.
	Name string
	// Apply returns the simulation's object for a snapshot's object, and its action. It does not
	// change its argument.
	Apply func(kind *snapshot.Kind, o map[string]any) (map[string]any, Action)
	// Nodes are the nodes that the snapshot must have.
	Nodes []string
	// Copies returns additional objects for the objects in the snapshot for which IsTemplate is true,
	// and notes for the report. They are kept. Both may be nil.
	IsTemplate func(kind *snapshot.Kind, o map[string]any) bool
	Copies     func(originals []Object) (copies []Object, notes []string)
	// Objects are created in addition to the snapshot's objects, and Workloads are scheduled: Count
	// copies of each, then more until one does not fit, at most Limit.
	Objects      []Object
	Workloads    []Workload
	Count, Limit int
	// Notes are for the report.
	Notes []string
	// Removal is what follows if pods from a drained node have no node: the node is removed, which can
	// make room for pods that are spread over nodes. It is nil for other scenarios.
	Removal *Scenario
}

// Object is an object that a snapshot does not have.
type Object struct {
	Kind    *snapshot.Kind
	Version string
	Fields  map[string]any
}

// newScenario returns a scenario that treats nodes and pods.
func newScenario(name string, apply func(kind *snapshot.Kind, o object) (object, Action)) Scenario {
	return Scenario{Name: name, Apply: func(kind *snapshot.Kind, o map[string]any) (map[string]any, Action) {
		if kind.Name != "Pod" {
			return apply(kind, o)
		}
		o, action := apply(kind, restored(o))
		if action == Leave {
			o = leftOut(o)
		}
		return o, action
	}}
}

// Pending is the scenario in which the pods that are pending in the snapshot are scheduled.
func Pending() Scenario {
	return newScenario("pending", func(kind *snapshot.Kind, o object) (object, Action) {
		if kind.Name == "Pod" && isPending(o) {
			return o, Schedule
		}
		return o, Keep
	})
}

// ReplaceAll is the scenario in which all pods that can move are scheduled again, together with the
// pending ones, on empty nodes.
func ReplaceAll() Scenario {
	return newScenario("replace-all", func(kind *snapshot.Kind, o object) (object, Action) {
		switch {
		case kind.Name != "Pod":
		case isPending(o):
			return o, Schedule
		case isMovable(o):
			return unbound(o), Schedule
		}
		return o, Keep
	})
}

// Drain is the scenario in which nodes are cordoned, and their pods that can move are scheduled
// again. Pending pods stay pending.
func Drain(nodes []string) Scenario {
	s := newScenario("drain", func(kind *snapshot.Kind, o object) (object, Action) {
		name, _, _ := unstructured.NestedString(o, "metadata", "name")
		switch {
		case kind.Name == "Node" && slices.Contains(nodes, name):
			return cordoned(o), Keep
		case kind.Name == "Pod" && slices.Contains(nodes, NodeOf(o)) && isMovable(o):
			return unbound(o), Schedule
		case kind.Name == "Pod" && isPending(o):
			return o, Leave
		}
		return o, Keep
	})
	s.Nodes = nodes
	removal := removal(nodes)
	s.Removal = &removal
	return s
}

// removal is the scenario in which nodes are removed, with the pods that cannot move, and their
// other pods are scheduled again. Pending pods stay pending.
func removal(nodes []string) Scenario {
	s := newScenario("drain", func(kind *snapshot.Kind, o object) (object, Action) {
		on := slices.Contains(nodes, nodeOf(kind, o))
		switch {
		case on && kind.Name == "Pod" && isMovable(o):
			return unbound(o), Schedule
		case on:
			return o, Drop
		case kind.Name == "Pod" && isPending(o):
			return o, Leave
		}
		return o, Keep
	})
	s.Nodes = nodes
	return s
}

// One is the scenario in which one pod is scheduled, again if it has a node. Other pending pods
// stay pending.
func One(namespace, name string) Scenario {
	return newScenario("explain", func(kind *snapshot.Kind, o object) (object, Action) {
		metadata := part(o, "metadata")
		switch {
		case kind.Name != "Pod":
		case metadata["namespace"] == namespace && metadata["name"] == name && !isGone(o):
			return unbound(o), Schedule
		case isPending(o):
			return o, Leave
		}
		return o, Keep
	})
}

// Running is the scenario in which nothing in the snapshot is scheduled: pending pods stay pending.
func Running() Scenario {
	return newScenario("running", func(kind *snapshot.Kind, o object) (object, Action) {
		if kind.Name == "Pod" && isPending(o) {
			return o, Leave
		}
		return o, Keep
	})
}

// NameOf returns an object's namespace and name.
func NameOf(o map[string]any) (namespace, name string) {
	metadata := part(o, "metadata")
	namespace, _ = metadata["namespace"].(string)
	name, _ = metadata["name"].(string)
	return namespace, name
}

// NodeOf returns the name of the node that a pod is bound to.
func NodeOf(pod map[string]any) string {
	node, _ := part(pod, "spec")["nodeName"].(string)
	return node
}

// noScheduler is the prefix of the scheduler name in a pod that is left out. No scheduler has such
// a name.
const noScheduler = "left-out.pmk-sched.io/"

// leftOut returns a copy of a pending pod that every scheduler ignores. restored undoes the change.
func leftOut(pod object) object {
	pod = runtime.DeepCopyJSON(pod)
	spec := specOf(pod)
	name, _ := spec["schedulerName"].(string)
	spec["schedulerName"] = noScheduler + name
	return pod
}

func restored(pod object) object {
	name, _, _ := unstructured.NestedString(pod, "spec", "schedulerName")
	name, ok := strings.CutPrefix(name, noScheduler)
	if !ok {
		return pod
	}
	pod = runtime.DeepCopyJSON(pod)
	if part(pod, "spec")["schedulerName"] = name; name == "" {
		delete(part(pod, "spec"), "schedulerName")
	}
	return pod
}

// isMovable reports whether a pod takes room on a node and could run on another one. DaemonSet pods
// and static pods cannot.
func isMovable(pod object) bool {
	metadata, spec := part(pod, "metadata"), part(pod, "spec")
	if node, _ := spec["nodeName"].(string); node == "" || metadata["deletionTimestamp"] != nil {
		return false
	}
	if IsFinished(pod) {
		return false
	}
	return !slices.ContainsFunc(list(metadata, "ownerReferences"), func(owner any) bool {
		kind := asObject(owner)["kind"]
		return kind == "DaemonSet" || kind == "Node"
	})
}

// IsFinished reports whether a pod has finished.
func IsFinished(pod map[string]any) bool {
	phase := part(pod, "status")["phase"]
	return phase == "Succeeded" || phase == "Failed"
}

// SetUID gives a pod without a UID one, so that other objects can refer to it.
func SetUID(pod map[string]any) {
	metadata := part(pod, "metadata")
	if uid, _ := metadata["uid"].(string); uid == "" && metadata != nil {
		namespace, name := NameOf(pod)
		metadata["uid"] = newUID("Pod", namespace+"/"+name)
	}
}

// unbound returns a copy of a pod without its node and its status, except for the names of claims
// that were made from templates.
func unbound(pod object) object {
	pod = runtime.DeepCopyJSON(pod)
	delete(part(pod, "spec"), "nodeName")
	claims := list(pod, "status", "resourceClaimStatuses")
	delete(pod, "status")
	if claims != nil {
		pod["status"] = object{"resourceClaimStatuses": claims}
	}
	return pod
}

// cordoned returns a node as `kubectl cordon` leaves it: the taint is the node controller's.
func cordoned(node object) object {
	node = runtime.DeepCopyJSON(node)
	spec := specOf(node)
	spec["unschedulable"] = true
	const key = "node.kubernetes.io/unschedulable"
	taints := list(spec, "taints")
	if !slices.ContainsFunc(taints, func(t any) bool { return asObject(t)["key"] == key }) {
		spec["taints"] = append(taints, object{"key": key, "effect": "NoSchedule"})
	}
	return node
}

// isPending reports whether a scheduler would look for a node for a pod.
func isPending(pod object) bool {
	metadata, spec, status := part(pod, "metadata"), part(pod, "spec"), part(pod, "status")
	switch phase, _ := status["phase"].(string); phase {
	case "", "Pending":
	default:
		return false
	}
	return (spec["nodeName"] == nil || spec["nodeName"] == "") && metadata["deletionTimestamp"] == nil
}

// part returns a field that is an object, to read or to change it. It is nil if there is none.
func part(o object, path ...string) object {
	value, _, _ := unstructured.NestedFieldNoCopy(o, path...)
	inner, _ := value.(object)
	return inner
}

// list returns a field that is a list, to read it or to change its elements.
func list(o object, path ...string) []any {
	value, _, _ := unstructured.NestedFieldNoCopy(o, path...)
	all, _ := value.([]any)
	return all
}

// Waiting is a pod that waits to be scheduled, with the fields that determine its place in the
// queue.
type Waiting struct {
	Key      string // namespace/name
	UID      string // in the snapshot
	Priority int64
	Created  string // RFC 3339, in UTC
	Pod      []byte // JSON
}

// NewWaiting returns the pod with its place in the queue. text is the pod as JSON.
func NewWaiting(key string, pod map[string]any, text []byte) Waiting {
	metadata := part(pod, "metadata")
	w := Waiting{Key: key, Pod: text}
	w.UID, _ = metadata["uid"].(string)
	w.Created, _ = metadata["creationTimestamp"].(string)
	if priority, ok := part(pod, "spec")["priority"].(json.Number); ok {
		w.Priority, _ = priority.Int64() // the API server refuses other numbers
	}
	return w
}

// Sort orders pods as a kube-scheduler's queue does (pkg/scheduler/framework/plugins/queuesort): by
// priority, then by age.
func Sort(pods []Waiting) {
	slices.SortFunc(pods, func(a, b Waiting) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Created, b.Created), cmp.Compare(a.Key, b.Key))
	})
}

// UseProfile has a pod name a profile that the simulated scheduler has. It reports whether the pod
// named another scheduler; a manifest may name none.
func UseProfile(pod map[string]any, profiles []string, otherwise string) bool {
	spec := part(pod, "spec")
	name, _ := spec["schedulerName"].(string)
	if spec == nil || slices.Contains(profiles, name) || name == "" && slices.Contains(profiles, "default-scheduler") {
		return false
	}
	spec["schedulerName"] = otherwise
	return name != ""
}
