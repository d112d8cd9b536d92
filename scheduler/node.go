package scheduler

import (
	corev1 "k8s.io/api/core/v1"
)

// NodeInfo is a node as the scheduler sees it in one cycle: the object, and the pods on it,
// those included that were assigned to it a moment ago and are not bound yet.
// Nothing that it returns may be changed. No method copies or allocates.
type NodeInfo interface {
	// Node returns the node's object.
	Node() *corev1.Node
	// PodCount returns the number of pods on the node.
	PodCount() int
	// Pod returns one of them; i is below PodCount.
	Pod(i int) *corev1.Pod
	// Requested returns the sum of what the node's pods request.
	Requested() Resources
	// Allocatable returns what the node offers to pods.
	Allocatable() Resources
}

// Resources is an amount of resources.
type Resources struct {
	// MilliCPU is in thousandths of a core.
	MilliCPU int64
	// Memory and EphemeralStorage are in bytes.
	Memory, EphemeralStorage int64
	// Pods is a number of pods: those that are there, or that may be.
	Pods int64
	// Scalar holds extended resources and huge pages. It is shared: read only.
	Scalar map[corev1.ResourceName]int64
}

// NodeLister gives the nodes as they were at the beginning of the scheduling cycle. It is to be
// used in the points from PreFilter to Permit only: afterwards the next cycle changes it.
type NodeLister interface {
	// List returns all nodes.
	List() ([]NodeInfo, error)
	// Get returns one node, or an error if there is none of that name.
	Get(name string) (NodeInfo, error)
}
