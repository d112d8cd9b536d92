// Package scenario decides how a simulation treats the objects in a snapshot: which pods it
// schedules, in which order, and how an object without the fields that no scheduler reads is
// created on an API server.
//
// The package does no I/O.
package scenario

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
