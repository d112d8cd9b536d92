package scheduler

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Scores are between MinNodeScore and MaxNodeScore, both included, after normalization.
// They are the framework's own bounds (MinNodeScore and MaxNodeScore of pkg/scheduler/framework).
const (
	MinNodeScore int64 = 0
	MaxNodeScore int64 = 100
)

// Plugin is implemented by every plugin, together with one or more of the interfaces below.
type Plugin interface {
	// Name returns the name that the configuration uses, the same as the package's constant Name.
	Name() string
}

// PreEnqueuePlugin decides whether a pod may enter the scheduling queue. Releases before 1.26 do
// not have this extension point: a plugin that implements it cannot be built for them.
type PreEnqueuePlugin interface {
	Plugin
	// PreEnqueue is called before a pod is added to the queue. Any status other than nil keeps the pod
	// out; PreEnqueue is called again when the pod changes or an event of EventsPlugin occurs. It
	// blocks the informers, so it must return immediately.
	PreEnqueue(ctx context.Context, pod *corev1.Pod) *Status
}

// QueueSortPlugin orders the queue. Exactly one is enabled, the same in all profiles: to enable
// one, disable the default, PrioritySort.
type QueueSortPlugin interface {
	Plugin
	// Less reports whether a is scheduled before b. It must be a strict order, and fast: it runs while
	// the queue is locked.
	Less(a, b QueuedPod) bool
}

// PreFilterPlugin runs once for a pod, before its nodes are filtered.
type PreFilterPlugin interface {
	Plugin
	// PreFilter is called once per scheduling cycle. It may write computed values to state, for
	// Filter to read. A result other than nil restricts the nodes that are considered; without one,
	// all are. Skip skips this plugin's Filter for the pod; Unschedulable and Unresolvable reject
	// the pod on all nodes; Error ends the attempt.
	PreFilter(ctx context.Context, state State, pod *corev1.Pod) (*PreFilterResult, *Status)
}

// PreFilterExtensions is for a PreFilterPlugin whose state depends on a node's pods. Preemption
// calls it while it simulates adding pods to a node or removing them.
type PreFilterExtensions interface {
	// AddPod updates state for pod as if other were on the node.
	AddPod(ctx context.Context, state State, pod, other *corev1.Pod, node NodeInfo) *Status
	// RemovePod updates state for pod as if other were not on the node.
	RemovePod(ctx context.Context, state State, pod, other *corev1.Pod, node NodeInfo) *Status
}

// FilterPlugin decides whether a node can run a pod.
type FilterPlugin interface {
	Plugin
	// Filter is called for every node that is considered, for several nodes in parallel, until a
	// plugin rejects the node. nil accepts the node. Unschedulable rejects it, and preemption might
	// help; Unresolvable rejects it, and preemption cannot help; Error ends the attempt. A Status can
	// be created once and returned many times.
	Filter(ctx context.Context, state State, pod *corev1.Pod, node NodeInfo) *Status
}

// PostFilterPlugin acts when no node passed the filters, as preemption does.
type PostFilterPlugin interface {
	Plugin
	// PostFilter is called when every node was rejected. After a nil Status the pod is retried, on
	// nominatedNode if that is not empty; after Unschedulable the next plugin is called.
	PostFilter(ctx context.Context, state State, pod *corev1.Pod, rejected Rejections) (nominatedNode string,
		status *Status)
}

// PreScorePlugin prepares scoring.
type PreScorePlugin interface {
	Plugin
	// PreScore is called once per cycle with the nodes that passed the filters. It may write to state.
	// Skip skips this plugin's Score for the pod; any other status than nil ends the attempt.
	PreScore(ctx context.Context, state State, pod *corev1.Pod, nodes []NodeInfo) *Status
}

// ScorePlugin scores a node for a pod.
type ScorePlugin interface {
	Plugin
	// Score is called for every node that passed the filters, for several nodes in parallel. It
	// returns MinNodeScore to MaxNodeScore, or any number if the plugin is also a ScoreNormalizer. The
	// scheduler multiplies the score by the plugin's weight. A Status other than nil ends the attempt.
	Score(ctx context.Context, state State, pod *corev1.Pod, node NodeInfo) (int64, *Status)
}

// ScoreNormalizer is for a ScorePlugin whose scores are relative to each other.
type ScoreNormalizer interface {
	// NormalizeScore is called once per cycle, after Score, with the scores of all nodes. It changes
	// them in place to values between MinNodeScore and MaxNodeScore.
	NormalizeScore(ctx context.Context, state State, pod *corev1.Pod, scores []NodeScore) *Status
}

// NodeScore is one node's score.
type NodeScore struct {
	Name  string
	Score int64
}

// ReservePlugin keeps track of resources that are reserved for pods before they are bound.
type ReservePlugin interface {
	Plugin
	// Reserve is called after a node was chosen. Any status other than nil ends the attempt. Releases
	// before 1.28 log a rejection as an error; the effect is the same.
	Reserve(ctx context.Context, state State, pod *corev1.Pod, node string) *Status
	// Unreserve undoes Reserve when a later step fails. It may be called without a preceding Reserve,
	// and more than once.
	Unreserve(ctx context.Context, state State, pod *corev1.Pod, node string)
}

// PermitPlugin can delay or reject a pod before it is bound.
type PermitPlugin interface {
	Plugin
	// Permit returns nil to continue, a rejection, or Wait with a timeout (at most 15 minutes). Wait
	// holds the pod until Allow or Reject of Handle.GetWaitingPod is called or the timeout expires.
	Permit(ctx context.Context, state State, pod *corev1.Pod, node string) (*Status, time.Duration)
}

// PreBindPlugin does work that is required before a pod is bound, such as preparing a volume.
type PreBindPlugin interface {
	Plugin
	// PreBind runs in parallel with the scheduling of other pods, so it may wait for the network. Any
	// status other than nil ends the attempt, and the pod is retried.
	PreBind(ctx context.Context, state State, pod *corev1.Pod, node string) *Status
}

// PreBindPreFlighter is for a PreBindPlugin that has nothing to do for some pods.
type PreBindPreFlighter interface {
	// PreBindPreFlight returns nil if PreBind has work to do for the pod, and Skip if it has none:
	// PreBind is not called then. Error ends the attempt, and so does any other status. It is called
	// before Permit's wait, and must neither act nor wait.
	//
	// The scheduler calls it from 1.35 on (in 1.34 with the feature gate
	// NominatedNodeNameForExpectation). If no plugin has work to do and no plugin lets the pod wait at
	// Permit, it does not write status.nominatedNodeName before it binds the pod, which saves a
	// request to the API server for each pod. Earlier releases and extenders call PreBind for every
	// pod, so PreBind must return nil for a pod without work.
	PreBindPreFlight(ctx context.Context, state State, pod *corev1.Pod, node string) *Status
}

// BindPlugin binds a pod.
type BindPlugin interface {
	Plugin
	// Bind is called for each bind plugin in turn until one returns a status other than Skip: nil if
	// it bound the pod.
	Bind(ctx context.Context, state State, pod *corev1.Pod, node string) *Status
}

// PostBindPlugin runs after a pod was bound.
type PostBindPlugin interface {
	Plugin
	// PostBind is called after the pod was bound. It has no status: log errors.
	PostBind(ctx context.Context, state State, pod *corev1.Pod, node string)
}

// EventsPlugin names the events after which the scheduler retries a pod that this plugin rejected.
// Pods rejected by a plugin that does not implement it are retried after every event. Kubernetes
// 1.20 always does so.
//
// The scheduler also retries a pod whose labels, tolerations, requests or scheduling gates change,
// whether the plugin names that or not. For its annotations, and for Handle.Activate, name
// ActionUpdate of EventPod: releases from 1.32 on ignore these otherwise.
type EventsPlugin interface {
	Plugin
	// EventsToRegister is called once, when the scheduler starts.
	EventsToRegister() []ClusterEvent
}

// PreFilterResult restricts the nodes that are considered for a pod.
type PreFilterResult struct {
	// Nodes are the nodes' names. If it is empty, no node fits.
	Nodes []string
}

// Rejections returns the reasons why nodes did not pass the filters.
type Rejections interface {
	// Status returns the status that rejected the node. It is Unresolvable for a node that was not
	// considered, for example because it is not in the result of PreFilter.
	Status(node string) *Status
}

// QueuedPod is a pod in the scheduling queue. It is passed by value and does not allocate.
type QueuedPod struct {
	// Pod is nil if the entry is not a pod (pod groups of 1.37, disabled by default).
	Pod *corev1.Pod
	// Priority is the pod's priority, 0 if it has none.
	Priority int32
	// Timestamp is the time when the pod was last added to the queue.
	Timestamp time.Time
	// Attempts is the number of scheduling attempts so far.
	Attempts int
}

// SignPlugin declares the part of a pod on which the plugin's PreFilter, Filter, PreScore and Score
// depend.
//
// From 1.35 on the scheduler batches pods: it reuses a pod's filtered and scored nodes for pods
// with the same signature that follow it within half a second (OpportunisticBatching;
// pkg/scheduler/framework/runtime/batch.go). A plugin with one of these four extension points that
// does not implement SignPlugin disables this for all pods with its profile. That is the safe
// default: nothing is known about such a plugin. Earlier releases do not call Sign.
//
// PreFilter still runs for every pod, and Filter for the node that is reused. Not called are Filter
// for the other nodes and, for the node that is reused, PreScore and Score; up to 1.36 a node is
// reused only if the previous pod filled its node. A set of nodes that PreFilter returns is not
// applied to the reused node: implement Filter too, or return the set in Sign.
type SignPlugin interface {
	Plugin
	// Sign returns the part of the pod that the results depend on: two pods with equal parts must
	// get the same results for the same nodes in the same state. nil means that they do not depend
	// on the pod. The part is encoded as JSON; sort lists whose order does not matter. Sign runs
	// when the pod is queued (in 1.35 for each attempt), so it must depend on nothing but the pod
	// and the plugin's arguments.
	//
	// A status other than nil means that the pod cannot be signed and is not batched. Return
	// Unschedulable if placing the previous pod changes the results for other nodes than that pod's
	// own, as with pod affinity. Results that depend on the pods of the node itself, as with its
	// free resources, can be signed.
	Sign(ctx context.Context, pod *corev1.Pod) (part interface{}, status *Status)
}
