package scheduler

import (
	corev1 "k8s.io/api/core/v1"
)

// NodeInfo is a node as the scheduler sees it in one cycle: the object and the pods on it,
// including pods that were assigned to it and are not bound yet. The values that it returns must
// not be modified. No method copies or allocates.
type NodeInfo interface {
	// Node returns the node's object.
	Node() *corev1.Node
	// PodCount returns the number of pods on the node.
	PodCount() int
	// Pod returns pod i, 0 ≤ i < PodCount.
	Pod(i int) *corev1.Pod
	// Requested returns the sum of the node's pod requests.
	Requested() Resources
	// Allocatable returns the resources that the node has for pods.
	Allocatable() Resources
}

// Resources is an amount of resources.
type Resources struct {
	// MilliCPU is in thousandths of a core.
	MilliCPU int64
	// Memory and EphemeralStorage are in bytes.
	Memory, EphemeralStorage int64
	// Pods is a number of pods.
	Pods int64
	// Scalar holds extended resources and huge pages. It is shared and must not be modified.
	Scalar map[corev1.ResourceName]int64
}

// NodeLister lists the nodes as they were at the beginning of the scheduling cycle. Use it only in
// the extension points from PreFilter to Permit: after these, the next cycle may change it.
type NodeLister interface {
	// List returns all nodes.
	List() ([]NodeInfo, error)
	// Get returns the node with that name, or an error if it does not exist.
	Get(name string) (NodeInfo, error)
}
