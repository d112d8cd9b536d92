package explain

// Cause is the kind of a [Finding].
type Cause string

// Causes. docs/findings.md has their comments.
const (
	// Scheduled: the pod has a node.
	Scheduled Cause = "Scheduled"
	// Gated: the pod has scheduling gates. Schedulers ignore it until all gates are removed.
	Gated Cause = "SchedulingGated"
	// NoScheduler: the scheduler that the pod names was not found.
	NoScheduler Cause = "NoScheduler"
	// Down: the pod's scheduler does not run, or no replica leads.
	Down Cause = "SchedulerDown"
	// NotTried: the scheduler has not reported on the pod yet.
	NotTried Cause = "NotTriedYet"
	// Retry: nodes have room now, and the scheduler will try the pod again.
	Retry Cause = "WaitsForRetry"
	// Failed: an attempt to schedule the pod ended with an error.
	Failed Cause = "SchedulerError"
	// NoNodes: the cluster has no nodes.
	NoNodes Cause = "NoNodes"
	// Preempting: the scheduler evicts pods with lower priority and waits until they have ended.
	Preempting Cause = "Preempting"
	// Priority: evicting pods with lower priority does not help, or the pod's priority forbids it.
	Priority Cause = "Priority"
	// Resource: nodes lack a resource that the pod requests.
	Resource Cause = "InsufficientResource"
	// Taint: nodes have a taint that the pod does not tolerate.
	Taint Cause = "Taint"
	// NotReady: nodes are not ready.
	NotReady Cause = "NodeNotReady"
	// Cordoned: nodes are cordoned.
	Cordoned Cause = "NodeCordoned"
	// NodeAffinity: nodes do not match the pod's node selector or node affinity.
	NodeAffinity Cause = "NodeAffinity"
	// NodeName: nodes are not the one in spec.nodeName.
	NodeName Cause = "NodeName"
	// NodeFeatures: nodes do not declare features that the pod needs.
	NodeFeatures Cause = "NodeFeatures"
	// PodAffinity: no pods that the pod's affinity selects are in the nodes' topology domain.
	PodAffinity Cause = "PodAffinity"
	// AntiAffinity: pods in the nodes' topology domain and the pod exclude each other.
	AntiAffinity Cause = "PodAntiAffinity"
	// Spread: the pod on these nodes would violate a topology spread constraint.
	Spread Cause = "TopologySpread"
	// HostPort: one of the pod's host ports is in use on the nodes.
	HostPort Cause = "HostPort"
	// MissingClaim: a PersistentVolumeClaim for the pod does not exist, or is being deleted.
	MissingClaim Cause = "MissingClaim"
	// UnboundClaim: a PersistentVolumeClaim for the pod is not bound.
	UnboundClaim Cause = "UnboundClaim"
	// MissingClass: a claim's StorageClass does not exist.
	MissingClass Cause = "MissingStorageClass"
	// MissingPV: a claim is bound to a PersistentVolume that does not exist.
	MissingPV Cause = "MissingVolume"
	// NoVolume: nodes have no PersistentVolume for one of the pod's claims.
	NoVolume Cause = "NoVolume"
	// VolumeNode: a volume's node affinity excludes the nodes.
	VolumeNode Cause = "VolumeNodeAffinity"
	// VolumeZone: a volume for the pod is in another zone than the nodes.
	VolumeZone Cause = "VolumeZone"
	// VolumeLimit: nodes have as many volumes from a driver as they support.
	VolumeLimit Cause = "VolumeLimit"
	// VolumeInUse: another pod uses a volume that only one pod or one node may use.
	VolumeInUse Cause = "VolumeInUse"
	// NoCapacity: the storage that the nodes reach has no capacity for a claim.
	NoCapacity Cause = "StorageCapacity"
	// Device: the devices for a ResourceClaim cannot be allocated.
	Device Cause = "ResourceClaim"
	// Gang: other pods in the group are missing or do not fit.
	Gang Cause = "PodGroup"
	// Plugin: a compiled-in plugin or an extender refuses the nodes, for the reason in the message.
	Plugin Cause = "PluginRejected"
	// PluginError: a plugin failed.
	PluginError Cause = "PluginFailed"
	// ExtenderNo: an extender refuses the nodes, for the reason in the message.
	ExtenderNo Cause = "ExtenderRejected"
	// ExtenderDown: a call to an extender failed.
	ExtenderDown Cause = "ExtenderFailed"
	// Quota: a ResourceQuota prevents the pod's creation.
	Quota Cause = "Quota"
	// Refused: the API server or an admission webhook refuses to create the pod.
	Refused Cause = "CreationRefused"
	// Preempted: a scheduler evicted the pod for a pod with higher priority.
	Preempted Cause = "Preempted"
	// TaintEvicted: the pod was deleted because its node or device has a NoExecute taint.
	TaintEvicted Cause = "TaintEviction"
	// KubeletEvicted: the kubelet ended the pod: the node lacked a resource, a critical pod needed
	// room, or the node was shut down.
	KubeletEvicted Cause = "KubeletEviction"
	// APIEvicted: a client evicted the pod through the API, such as kubectl drain, an autoscaler or a
	// descheduler.
	APIEvicted Cause = "APIEviction"
	// DeletedByOwner: the pod's controller deleted it.
	DeletedByOwner Cause = "DeletedByController"
	// EndUnknown: the pod has ended, and nothing shows why.
	EndUnknown Cause = "EndUnknown"
	// Deleted: the pod is being deleted.
	Deleted Cause = "Terminating"
)
