package scheduler

// ClusterEvent is a change of objects of one kind.
type ClusterEvent struct {
	Resource EventResource
	Action   ActionType
}

// EventResource names a kind of object: one of the constants below, or for a custom resource its
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

// The actions. ActionUpdate is any update; the ActionUpdateNode… are updates of parts of a node.
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
