package scheduler

// ClusterEvent is something that happens to objects of a kind.
type ClusterEvent struct {
	Resource EventResource
	Action   ActionType
}

// EventResource names a kind of object: one of the constants below, or, for a custom resource,
// plural, version and group as in "networkmetrics.v1alpha1.network.example.com".
type EventResource string

// Kinds that the scheduler watches on every release.
const (
	EventPod                   EventResource = "Pod"
	EventNode                  EventResource = "Node"
	EventPersistentVolume      EventResource = "PersistentVolume"
	EventPersistentVolumeClaim EventResource = "PersistentVolumeClaim"
	EventStorageClass          EventResource = "storage.k8s.io/StorageClass"
	EventCSINode               EventResource = "storage.k8s.io/CSINode"
	// EventAny is every kind; its action is ActionAll.
	EventAny EventResource = "*"
)

// ActionType is a set of things that can happen to an object; they are combined with |.
type ActionType int

// Actions. The four updates of parts of a node narrow ActionUpdate, which is any change.
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
