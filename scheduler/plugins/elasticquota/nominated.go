package elasticquota

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

const (
	// nominationTime is the time for which a node's room is kept for a pod after evictions for it.
	nominationTime = 5 * time.Minute
	// retryTime is the time without evictions for a pod that did not fit after the last evictions.
	retryTime = 5 * time.Minute
	// mostRounds is the maximum number of consecutive eviction rounds for a pod whose room was taken
	// by other pods, or which could not use it.
	mostRounds = 3
)

// nominations are the pods for which other pods were evicted. Room is kept for them on their node.
type nominations struct {
	now  func() time.Time
	pods scheduler.AssumedPods
	// freed has an element after room is no longer kept, for which nothing else has pods retried.
	freed chan struct{}

	mu     sync.Mutex
	failed map[types.UID]failure
}

// nomination is a nominated pod's value.
type nomination struct {
	need    amounts
	victims []*corev1.Pod
}

type failure struct {
	rounds int
	at     time.Time
}

func newNominations(now func() time.Time) *nominations {
	return &nominations{now: now, freed: make(chan struct{}, 1), failed: map[types.UID]failure{}}
}

// drop keeps no more room for a pod.
func (n *nominations) drop(pod types.UID) {
	if _, ok := n.pods.Get(pod); !ok {
		return
	}
	n.pods.Forget(pod)
	n.signal()
}

// signal makes the scheduler retry the pods that were refused kept room.
func (n *nominations) signal() {
	select {
	case n.freed <- struct{}{}:
	default:
	}
}

func (n *nominations) add(pod types.UID, node string, need amounts, victims []*corev1.Pod) {
	n.pods.Assume(scheduler.AssumedPod{
		UID: pod, Node: node, Value: nomination{need: need, victims: victims}, Expires: n.now().Add(nominationTime),
	})
}

// get returns the node and the victims of a nominated pod. It forgets a pod whose time is over.
func (n *nominations) get(pod types.UID) (node string, victims []*corev1.Pod, ok bool) {
	nominated, ok := n.pods.Get(pod)
	if ok && nominated.Expired(n.now()) {
		n.drop(pod)
		return "", nil, false
	}
	value, _ := nominated.Value.(nomination)
	return nominated.Node, value.victims, ok
}

// none reports whether no room is kept for any pod.
func (n *nominations) none() bool {
	kept := n.pods.Len()
	if n.pods.Expire(n.now()); n.pods.Len() < kept {
		n.signal()
	}
	return n.pods.Len() == 0
}

// keptOn returns the amounts that are kept on a node for other pods, or nil if there are none.
func (n *nominations) keptOn(node string, without types.UID) amounts {
	var kept amounts
	for _, pod := range n.pods.OnNode(node) {
		value, ok := pod.Value.(nomination)
		switch {
		case pod.Expired(n.now()):
			n.drop(pod.UID)
		case ok && pod.UID != without:
			if kept == nil {
				kept = amounts{}
			}
			kept.Add(value.need, 1)
		}
	}
	return kept
}

// forget removes a pod that has a node or is gone.
func (n *nominations) forget(pod types.UID) {
	n.drop(pod)
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.failed, pod)
}

// fail records that a pod did not fit although its victims are gone: because other pods took the
// room, or for another reason, so that evictions do not help.
func (n *nominations) fail(pod types.UID, taken bool) {
	n.drop(pod)
	n.mu.Lock()
	defer n.mu.Unlock()
	f := n.failed[pod]
	f.at, f.rounds = n.now(), f.rounds+1
	if !taken {
		f.rounds = mostRounds
	}
	n.failed[pod] = f
}

// abandon keeps no more room for a pod that was rejected before nodes were tried: by its quota, for
// example, which other pods have used up. The scheduler no longer nominates it either.
func (n *nominations) abandon(pod types.UID) {
	if _, ok := n.pods.Get(pod); ok {
		n.fail(pod, true)
	}
}

// mayEvict reports whether pods may be evicted for one.
func (n *nominations) mayEvict(pod types.UID) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	f := n.failed[pod]
	if f.rounds >= mostRounds && n.now().Sub(f.at) >= retryTime {
		delete(n.failed, pod)
		return true
	}
	return f.rounds < mostRounds
}
