package scheduler

import corev1 "k8s.io/api/core/v1"

// ClusterEvent is a change to objects of one kind.
type ClusterEvent struct {
	Resource EventResource
	Action   ActionType
	// Helps reports whether one such change can make a pod schedulable that the plugin rejected. If it
	// is nil, every change can. It is the framework's queueing hint, called from 1.32 on: earlier
	// releases retry the pod after every change to that kind. A wrong false leaves the pod unscheduled
	// for five minutes, so return true when in doubt.
	//
	// before and after are the object before and after the change: a *corev1.Pod, a *corev1.Node, for
	// a custom resource an *unstructured.Unstructured. before is nil if the object is new, after if it
	// was deleted. Helps runs for every rejected pod while the queue is locked: it must be fast, must
	// not block, and must not modify the objects.
	//
	// It is not called for changes to the rejected pod itself, except to its status, nor for pods
	// whose requests became smaller: the scheduler retries the pod after these.
	Helps func(pod *corev1.Pod, before, after interface{}) bool
}

// EventResource names an object kind: one of the constants below, or for a custom resource its
// plural, version and group, as in "networkmetrics.v1alpha1.network.example.com".
type EventResource string

// Kinds that the scheduler of every release watches.
const (
	EventPod                   EventResource = "Pod"
	EventNode                  EventResource = "Node"
	EventPersistentVolume      EventResource = "PersistentVolume"
	EventPersistentVolumeClaim EventResource = "PersistentVolumeClaim"
	EventStorageClass          EventResource = "storage.k8s.io/StorageClass"
	EventCSINode               EventResource = "storage.k8s.io/CSINode"
	// EventAny means every kind; its action is ActionAll.
	EventAny EventResource = "*"
)

// ActionType is a set of changes to an object; combine them with |.
type ActionType int

// The actions. ActionUpdate is any update; the ActionUpdateNode… are updates to parts of a node.
const (
	ActionAdd ActionType = 1 << iota
	ActionDelete
	ActionUpdate
	ActionUpdateNodeAllocatable
	ActionUpdateNodeLabel
	ActionUpdateNodeTaint
	ActionUpdateNodeCondition

	ActionAll = ActionAdd | ActionDelete | ActionUpdate
)

// RoomEvents returns the events that may make room on a node for a pod, and Handle.Activate's pod
// update. podHelps is the hint for pods that were deleted or updated. It should return false for
// updates that change nothing but the status: a kubelet often writes its pods' statuses. See
// LeftNode.
func RoomEvents(podHelps func(pod *corev1.Pod, before, after interface{}) bool) []ClusterEvent {
	return []ClusterEvent{
		{Resource: EventPod, Action: ActionDelete | ActionUpdate, Helps: podHelps},
		{
			Resource: EventNode,
			Action:   ActionAdd | ActionUpdateNodeAllocatable | ActionUpdateNodeLabel | ActionUpdateNodeTaint,
		},
	}
}

// LeftNode reports whether a pod does not take room on a node after a change: it was deleted, it
// gave up a node that it was not bound to, or it has finished. after is a hint's argument.
func LeftNode(after interface{}) bool {
	pod, ok := after.(*corev1.Pod)
	return !ok || PodFinished(pod)
}
