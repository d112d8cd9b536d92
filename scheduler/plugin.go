package scheduler

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Scores are between MinNodeScore and MaxNodeScore, both included, after normalisation.
// They are the framework's own bounds (MinNodeScore and MaxNodeScore of pkg/scheduler/framework).
const (
	MinNodeScore int64 = 0
	MaxNodeScore int64 = 100
)

// Plugin is what every plugin is; it has one or more of the interfaces below, too.
type Plugin interface {
	// Name returns the name that the configuration uses, the same as the package's constant Name.
	Name() string
}

// PreEnqueuePlugin says whether a pod may enter the queue of pods to schedule.
// Releases before 1.26 do not have this point: a plugin with it cannot be built for them.
type PreEnqueuePlugin interface {
	Plugin
	// PreEnqueue is called before a pod is put in the queue. Anything but nil keeps it out; it is asked
	// again when the pod changes or an event of EventsPlugin happens. It holds up the informers:
	// return at once.
	PreEnqueue(ctx context.Context, pod *corev1.Pod) *Status
}

// QueueSortPlugin orders the queue. Exactly one is enabled, the same in all profiles: enabling
// one means disabling the default, PrioritySort.
type QueueSortPlugin interface {
	Plugin
	// Less says whether a is scheduled before b. It must be a strict order, and quick: it runs
	// with the queue locked.
	Less(a, b QueuedPod) bool
}

// PreFilterPlugin looks at a pod once, before its nodes are filtered.
type PreFilterPlugin interface {
	Plugin
	// PreFilter is called once per scheduling cycle. It may write what it computed to state, for
	// Filter to read. A result other than nil narrows the nodes that are looked at; nil is every
	// node. Skip leaves this plugin's Filter out for the pod; Unschedulable and Unresolvable
	// reject the pod on all nodes; Error ends the attempt.
	PreFilter(ctx context.Context, state State, pod *corev1.Pod) (*PreFilterResult, *Status)
}

// PreFilterExtensions is for a PreFilterPlugin whose state depends on the pods of a node.
// Preemption calls it while it tries what a node would be like without some pods.
type PreFilterExtensions interface {
	// AddPod is called when other is thought to be on the node; it updates state for pod.
	AddPod(ctx context.Context, state State, pod, other *corev1.Pod, node NodeInfo) *Status
	// RemovePod is called when other is thought away from the node; it updates state for pod.
	RemovePod(ctx context.Context, state State, pod, other *corev1.Pod, node NodeInfo) *Status
}

// FilterPlugin says whether a node can run a pod.
type FilterPlugin interface {
	Plugin
	// Filter is called for every node that is looked at, for several at a time, until one plugin
	// rejects the node. nil accepts it. Unschedulable rejects it, and removing pods from it
	// might help; Unresolvable rejects it whatever is removed; Error ends the attempt.
	// A Status can be made once and returned often.
	Filter(ctx context.Context, state State, pod *corev1.Pod, node NodeInfo) *Status
}

// PostFilterPlugin acts when no node passed the filters, as preemption does.
type PostFilterPlugin interface {
	Plugin
	// PostFilter is called when every node was rejected. With a nil Status the pod is tried
	// again, on nominatedNode if that is not empty; Unschedulable leaves it to the next plugin.
	PostFilter(ctx context.Context, state State, pod *corev1.Pod, rejected Rejections) (nominatedNode string, status *Status)
}

// PreScorePlugin prepares for scoring.
type PreScorePlugin interface {
	Plugin
	// PreScore is called once per cycle with the nodes that passed the filters. It may write to
	// state. Skip leaves this plugin's Score out for the pod; anything else but nil ends the attempt.
	PreScore(ctx context.Context, state State, pod *corev1.Pod, nodes []NodeInfo) *Status
}

// ScorePlugin says how good a node is for a pod.
type ScorePlugin interface {
	Plugin
	// Score is called for every node that passed the filters, for several at a time. It returns
	// MinNodeScore to MaxNodeScore, or any number if the plugin is a ScoreNormalizer as well.
	// The scheduler multiplies it with the plugin's weight. A Status other than nil ends the attempt.
	Score(ctx context.Context, state State, pod *corev1.Pod, node NodeInfo) (int64, *Status)
}

// ScoreNormalizer is for a ScorePlugin whose scores only make sense beside each other.
type ScoreNormalizer interface {
	// NormalizeScore is called once per cycle, after Score, with all its scores. It changes them
	// in place to MinNodeScore to MaxNodeScore.
	NormalizeScore(ctx context.Context, state State, pod *corev1.Pod, scores []NodeScore) *Status
}

// NodeScore is the score of one node.
type NodeScore struct {
	Name  string
	Score int64
}

// ReservePlugin keeps account of what is promised to pods that are not bound yet.
type ReservePlugin interface {
	Plugin
	// Reserve is called when a node was chosen. Anything but nil gives it up; releases before 1.28
	// take a rejection for an error, which is logged as one and changes nothing else.
	Reserve(ctx context.Context, state State, pod *corev1.Pod, node string) *Status
	// Unreserve undoes Reserve when the pod does not get to the node after all. It may be called
	// without Reserve before it, and twice.
	Unreserve(ctx context.Context, state State, pod *corev1.Pod, node string)
}

// PermitPlugin can hold a pod back before it is bound.
type PermitPlugin interface {
	Plugin
	// Permit returns nil to go on, Wait with a time to hold the pod until Handle.GetWaitingPod's
	// Allow or Reject is called or the time (at most 15 minutes) is over, or a rejection.
	Permit(ctx context.Context, state State, pod *corev1.Pod, node string) (*Status, time.Duration)
}

// PreBindPlugin does what must be done before a pod is bound, such as preparing a volume.
type PreBindPlugin interface {
	Plugin
	// PreBind runs beside the scheduling of other pods, so it may wait for the network. Anything but nil
	// gives the node up and the pod is tried again.
	PreBind(ctx context.Context, state State, pod *corev1.Pod, node string) *Status
}

// BindPlugin binds a pod.
type BindPlugin interface {
	Plugin
	// Bind is called for the bind plugins in turn until one does not return Skip. That one has
	// bound the pod (nil) or failed to.
	Bind(ctx context.Context, state State, pod *corev1.Pod, node string) *Status
}

// PostBindPlugin is told that a pod is bound.
type PostBindPlugin interface {
	Plugin
	// PostBind is called after the pod was bound. Its errors are its own to log.
	PostBind(ctx context.Context, state State, pod *corev1.Pod, node string)
}

// EventsPlugin names the events that are worth another attempt at a pod which this plugin
// rejected. A plugin without it is tried again at every event. So it is on 1.20 with any plugin.
type EventsPlugin interface {
	Plugin
	// EventsToRegister is called once, when the scheduler starts.
	EventsToRegister() []ClusterEvent
}

// PreFilterResult narrows the nodes that a pod is tried on.
type PreFilterResult struct {
	// Nodes are the names of the nodes; when there are none, no node fits.
	Nodes []string
}

// Rejections tells why nodes did not pass the filters.
type Rejections interface {
	// Status returns why the node was rejected. Of a node that was not looked at, for instance
	// because PreFilter left it out, it is Unresolvable.
	Status(node string) *Status
}

// QueuedPod is a pod in the queue. It is passed by value and costs nothing.
type QueuedPod struct {
	// Pod is nil when the release queued something other than a pod (pod groups of 1.37, off by default).
	Pod *corev1.Pod
	// Priority is the pod's own, 0 when it has none.
	Priority int32
	// Timestamp is when the pod entered the queue, this time.
	Timestamp time.Time
	// Attempts is how often it was tried.
	Attempts int
}
