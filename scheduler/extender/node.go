package extender

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// node is a scheduler.NodeInfo. It is immutable, so that requests read it without a lock; an event
// creates another.
type node struct {
	object                 *corev1.Node
	pods                   []*corev1.Pod
	requested, allocatable scheduler.Resources
}

var _ scheduler.NodeInfo = &node{}

// Node implements scheduler.NodeInfo.
func (n *node) Node() *corev1.Node { return n.object }

// PodCount implements scheduler.NodeInfo.
func (n *node) PodCount() int { return len(n.pods) }

// Pod implements scheduler.NodeInfo.
func (n *node) Pod(i int) *corev1.Pod { return n.pods[i] }

// Requested implements scheduler.NodeInfo.
func (n *node) Requested() scheduler.Resources { return n.requested }

// Allocatable implements scheduler.NodeInfo.
func (n *node) Allocatable() scheduler.Resources { return n.allocatable }

// describedBy returns a node with the same pods and another object, which may be nil.
func (n *node) describedBy(object *corev1.Node) *node {
	described := &node{object: object, pods: n.pods, requested: n.requested}
	if object != nil {
		described.allocatable = scheduler.NewResources(object.Status.Allocatable)
	}
	return described
}

func (n *node) with(pod *corev1.Pod) *node {
	more := *n
	more.pods = append(slices.Clone(n.pods), pod)
	more.requested = n.requested.Plus(scheduler.PodRequests(pod), 1)
	return &more
}

// without returns a node without the pod, and that pod; or n itself and nil if it does not have the
// pod.
func (n *node) without(uid types.UID) (*node, *corev1.Pod) {
	i := slices.IndexFunc(n.pods, func(p *corev1.Pod) bool { return p.UID == uid })
	if i < 0 {
		return n, nil
	}
	gone := n.pods[i]
	less := *n
	less.pods = slices.Delete(slices.Clone(n.pods), i, i+1)
	if !n.requested.Saturated() {
		less.requested = n.requested.Plus(scheduler.PodRequests(gone), -1)
		return &less, gone
	}
	less.requested = scheduler.Resources{}
	for _, pod := range less.pods {
		less.requested = less.requested.Plus(scheduler.PodRequests(pod), 1)
	}
	return &less, gone
}
