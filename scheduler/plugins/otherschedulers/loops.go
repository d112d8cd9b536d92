package otherschedulers

import (
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

const (
	// mostRounds is how often a pod may evict pods of one owner within loopTime. Then it is held back
	// for loopTime after the last eviction.
	mostRounds = 3
	loopTime   = 10 * time.Minute
	// evictionTime is the time from the decision of a scheduler to evict a pod until the scheduler
	// sees that the pod terminates.
	evictionTime = 15 * time.Second
	// most limits the pods that evict others and, for each, the rounds and evicted pods that are kept.
	most = 1000
)

// loops finds pods that evict pods of the same owner again and again: another scheduler places the
// pods that replace them in the room that was made. It is safe for concurrent use.
//
// The framework does not tell a plugin which pods were evicted for which. A pod counts as evicted
// for another one if it begins to terminate on the node for which the other one is nominated, soon
// after preemption was tried for that one, and has a lower priority.
type loops struct {
	now func() time.Time

	mu   sync.Mutex
	pods map[types.UID]*preemptor
	// terminating are the pods that were seen to terminate since pods has an element.
	terminating map[types.UID]time.Time
	evicted     []evicted
}

// preemptor is a pod for which preemption was tried.
type preemptor struct {
	tries []time.Time
	nodes map[string]bool
	until time.Time
}

// evicted is a pod that has begun to terminate.
type evicted struct {
	at        time.Time
	node      string
	namespace string
	priority  int32
	owner     metav1.OwnerReference
}

func newLoops(now func() time.Time) *loops {
	return &loops{now: now, pods: map[types.UID]*preemptor{}, terminating: map[types.UID]time.Time{}}
}

// tries records that preemption is tried for a pod.
func (l *loops) tries(pod *corev1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire()
	e := l.pods[pod.UID]
	if e == nil {
		if len(l.pods) >= most {
			return
		}
		e = &preemptor{nodes: map[string]bool{}}
		l.pods[pod.UID] = e
	}
	e.nominated(pod)
	now := l.now()
	// Preemption tries several nodes in one cycle.
	if n := len(e.tries); n > 0 && now.Sub(e.tries[n-1]) < 100*time.Millisecond || n >= most {
		return
	}
	e.tries = append(e.tries, now)
}

// observe records the node for which a pod is nominated, and a pod that begins to terminate.
func (l *loops) observe(pod *corev1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pods) == 0 {
		return
	}
	if e := l.pods[pod.UID]; e != nil {
		if e.nominated(pod); pod.Spec.NodeName != "" {
			delete(l.pods, pod.UID)
		}
	}
	owner := metav1.GetControllerOf(pod)
	if pod.DeletionTimestamp == nil || pod.Spec.NodeName == "" || owner == nil || evictedByOther(pod) {
		return
	}
	if _, seen := l.terminating[pod.UID]; seen || len(l.evicted) >= most {
		return
	}
	l.terminating[pod.UID] = l.now()
	l.evicted = append(l.evicted, evicted{at: l.now(), node: pod.Spec.NodeName, namespace: pod.Namespace,
		priority: scheduler.PodPriority(pod), owner: *owner})
}

// nominated records the node for which the pod is nominated.
func (e *preemptor) nominated(pod *corev1.Pod) {
	if node := pod.Status.NominatedNodeName; node != "" && len(e.nodes) < most {
		e.nodes[node] = true
	}
}

// evictedByOther reports whether the API server knows that something else than a scheduler evicts a
// pod. Releases before 1.25 do not set the condition.
func evictedByOther(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == "DisruptionTarget" && c.Status == corev1.ConditionTrue {
			return c.Reason != "PreemptionByScheduler" && c.Reason != "PreemptionByKubeScheduler"
		}
	}
	return false
}

// forget removes a pod that was deleted.
func (l *loops) forget(pod *corev1.Pod) {
	l.observe(pod) // the informer may have missed that it began to terminate
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pods, pod.UID)
}

// expire forgets what is older than loopTime.
func (l *loops) expire() {
	limit := l.now().Add(-loopTime)
	for uid, e := range l.pods {
		for len(e.tries) > 0 && e.tries[0].Before(limit) {
			e.tries = e.tries[1:]
		}
		if len(e.tries) == 0 && e.until.Before(l.now()) {
			delete(l.pods, uid)
		}
	}
	for len(l.evicted) > 0 && l.evicted[0].at.Before(limit) {
		l.evicted = l.evicted[1:]
	}
	for uid, at := range l.terminating {
		if at.Before(limit) {
			delete(l.terminating, uid)
		}
	}
}

// heldBack reports whether a pod may not evict others now. It returns the reason if it is new.
func (l *loops) heldBack(pod *corev1.Pod) (held bool, reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.pods[pod.UID]
	if e == nil {
		return false, ""
	}
	l.expire()
	e.nominated(pod)
	if l.now().Before(e.until) {
		return true, ""
	}
	// By owner, the rounds in which its pods were evicted.
	rounds := map[types.UID]map[int]bool{}
	for _, v := range l.evicted {
		round, ok := e.roundOf(v.at)
		if !ok || !e.nodes[v.node] || v.priority >= scheduler.PodPriority(pod) {
			continue
		}
		if rounds[v.owner.UID] == nil {
			rounds[v.owner.UID] = map[int]bool{}
		}
		if rounds[v.owner.UID][round] = true; len(rounds[v.owner.UID]) >= mostRounds {
			e.until = v.at.Add(loopTime)
			// What happened until now does not count again.
			e.tries = nil
			return true, v.reason(pod)
		}
	}
	return false, ""
}

// roundOf returns the number of the last try before a pod began to terminate, if that was soon
// after it.
func (e *preemptor) roundOf(at time.Time) (int, bool) {
	for i := len(e.tries) - 1; i >= 0; i-- {
		if !e.tries[i].After(at) {
			return i, at.Sub(e.tries[i]) <= evictionTime
		}
	}
	return 0, false
}

// reason returns the note of an event. Users of the pod's namespace read it, so that it does not
// name an object of another namespace.
func (v evicted) reason(pod *corev1.Pod) string {
	owner := v.owner.Kind + " " + v.owner.Name
	if v.namespace != pod.Namespace {
		owner = fmt.Sprintf("the %s in another namespace with the UID %s", v.owner.Kind, v.owner.UID)
	}
	return fmt.Sprintf("pods of %s were evicted %d times within %s for this pod, which did not get their room on node %s: "+
		"it evicts no pods for %s; another scheduler places pods in the room, see OtherSchedulers",
		owner, mostRounds, minutes(loopTime), v.node, minutes(loopTime))
}

func minutes(d time.Duration) string { return fmt.Sprintf("%d minutes", int(d.Minutes())) }
