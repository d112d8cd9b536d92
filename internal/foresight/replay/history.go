package replay

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
)

// Life is a pod's recorded life. Times are since the recording began.
type Life struct {
	ID, Namespace, Name string
	// Before is set for pods in the snapshot.
	Before bool
	// Arrived is when the pod could first be scheduled.
	Arrived time.Duration
	// Bound is when it got its node, if it did. A trace may not know the node.
	IsBound bool
	Bound   time.Duration
	Node    string
	// Ended is when it finished or was deleted, if it did. Finished is set if it finished,
	// and Preempted if the scheduler evicted it: its own end is then not known.
	IsEnded, Finished, Preempted bool
	Ended                        time.Duration

	Priority int32
	Requests report.Amounts
	// Fixed is set for DaemonSet pods and static pods.
	Fixed bool

	deleting time.Duration
}

// EndOf returns when the pod ends in a replay in which it is bound at a time: a pod that finished
// runs as long as in the recording, a pod that was deleted is deleted at the same time. ok is false
// if it does not end.
func (l *Life) EndOf(bound time.Duration) (end time.Duration, ok bool) {
	switch {
	case !l.IsEnded || l.Preempted:
		return 0, false
	case !l.Finished:
		return l.Ended, true
	case l.IsBound:
		return bound + l.Ended - l.Bound, true
	}
	return bound + l.Ended - l.Arrived, true
}

// IsDeleted reports whether the pod was deleted before it finished, bound or not, and when.
func (l *Life) IsDeleted() (at time.Duration, ok bool) {
	return l.Ended, l.IsEnded && !l.Finished && !l.Preempted
}

// Wait returns how long the pod waited for its node in the recording.
func (l *Life) Wait() time.Duration { return l.Bound - l.Arrived }

// History has all pods' lives in a recording.
type History struct {
	lives   map[string]*Life // by ID
	current map[string]*Life // by namespace and name
	all     []*Life
	// Tally and Series are the recorded cluster's state.
	Tally  *Tally
	Series *Series
	// nominations are the nominated pods by node, and deleted the pods that were deleted on a node.
	nominations map[string][]nomination
	deleted     []deletion
}

// deletion is a pod that was deleted, and when it was gone.
type deletion struct {
	life *Life
	gone time.Duration
}

// NewHistory returns the history for a recording with some length.
func NewHistory(length time.Duration, prices []report.Price) *History {
	t := NewTally(prices)
	return &History{
		lives: map[string]*Life{}, current: map[string]*Life{}, Tally: t, Series: NewSeries(t, length),
		nominations: map[string][]nomination{},
	}
}

// ID identifies a pod: its UID, or its namespace and name in a trace.
func ID(pod *corev1.Pod) string {
	if pod.UID != "" {
		return string(pod.UID)
	}
	return Key(pod)
}

// Key returns a pod's namespace and name.
func Key(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

// IsGated reports whether a pod has scheduling gates.
func IsGated(pod *corev1.Pod) bool { return len(pod.Spec.SchedulingGates) > 0 }

// Lives returns the pods in arrival order.
func (h *History) Lives() []*Life { return h.all }

// Life returns the pod with an ID, or nil.
func (h *History) Life(id string) *Life { return h.lives[id] }

// Current returns the pod in the snapshot with a namespace and name, or nil.
func (h *History) Current(key string) *Life { return h.current[key] }

// Node records a node that is new or has changed.
func (h *History) Node(at time.Duration, node *corev1.Node) {
	h.Series.Advance(at)
	h.Tally.SetNode(node)
}

// NodeGone records that a node is gone.
func (h *History) NodeGone(at time.Duration, name string) {
	h.Series.Advance(at)
	h.Tally.RemoveNode(name)
}

// Start records a pod from the snapshot.
func (h *History) Start(pod *corev1.Pod) {
	if report.IsFinished(pod) {
		return
	}
	l := h.arrive(0, pod)
	l.Before = true
	h.observe(0, l, pod)
}

// Pod records a pod that is new or has changed.
func (h *History) Pod(at time.Duration, pod *corev1.Pod) {
	h.Series.Advance(at)
	l := h.lives[ID(pod)]
	if l == nil {
		if report.IsFinished(pod) || IsGated(pod) {
			return
		}
		l = h.arrive(at, pod)
	}
	h.observe(at, l, pod)
}

// PodGone records that a pod is gone. pod is its last known state, or its name alone.
func (h *History) PodGone(at time.Duration, pod *corev1.Pod) {
	h.Series.Advance(at)
	l := h.current[Key(pod)]
	if l == nil || pod.UID != "" && l.ID != string(pod.UID) {
		return
	}
	if report.IsFinished(pod) && !l.IsEnded { // in a trace it finishes and is gone at once
		l.Finished = true
	}
	h.end(at, l)
	delete(h.current, Key(pod))
}

func (h *History) arrive(at time.Duration, pod *corev1.Pod) *Life {
	l := &Life{
		ID: ID(pod), Namespace: pod.Namespace, Name: pod.Name, Arrived: at, Requests: report.PodAmounts(pod),
		Fixed: report.IsFixed(pod), deleting: -1,
	}
	if pod.Spec.Priority != nil {
		l.Priority = *pod.Spec.Priority
	}
	h.lives[l.ID], h.current[Key(pod)] = l, l
	h.all = append(h.all, l)
	h.Tally.Waiting++
	return l
}

// observe records a pod's state.
func (h *History) observe(at time.Duration, l *Life, pod *corev1.Pod) {
	if l.IsEnded {
		return
	}
	if isBound(pod) && !l.IsBound {
		l.IsBound, l.Bound, l.Node = true, at, pod.Spec.NodeName
		h.Tally.Waiting--
		h.Tally.AddPod(l.Node, l.Requests, l.Fixed)
	}
	if node := pod.Status.NominatedNodeName; node != "" && !l.IsBound {
		h.nominations[node] = append(h.nominations[node], nomination{at: at, priority: l.Priority})
	}
	if pod.DeletionTimestamp != nil && l.deleting < 0 {
		l.deleting = at
	}
	if report.IsFinished(pod) {
		l.Finished = true
		h.end(at, l)
	}
}

// end records the end of a pod.
func (h *History) end(at time.Duration, l *Life) {
	if l.IsEnded {
		return
	}
	l.IsEnded, l.Ended = true, at
	if l.IsBound {
		h.Tally.RemovePod(l.Node, l.Requests, l.Fixed)
	} else {
		h.Tally.Waiting--
	}
	if l.Finished || !l.IsBound {
		return
	}
	if l.deleting >= 0 {
		l.Ended = l.deleting // it was to leave then; its containers took until now
	}
	h.deleted = append(h.deleted, deletion{l, at})
}

// Finish completes the history when the recording ends. It finds out which pods the scheduler
// evicted: a pod with higher priority was nominated for their node.
func (h *History) Finish() {
	h.Series.Advance(h.Series.length)
	byNode := map[string]*nominations{}
	for node, all := range h.nominations {
		byNode[node] = newNominations(all)
	}
	for _, d := range h.deleted {
		highest, ok := byNode[d.life.Node].highest(d.life.Ended-nominationTime, d.gone+nominationTime)
		d.life.Preempted = ok && highest > d.life.Priority
	}
}

// isBound reports whether a pod has a node. A trace may only know that it was scheduled.
func isBound(pod *corev1.Pod) bool {
	if pod.Spec.NodeName != "" {
		return true
	}
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}
