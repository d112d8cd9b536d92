package elasticquota

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// promiseTime is how long room on a node is kept for the pod for which others were evicted.
	promiseTime = 5 * time.Minute
	// retryTime is how long no pod is evicted for one that did not fit after the last evictions.
	retryTime = 5 * time.Minute
	// mostRounds is how many times in a row others are evicted for a pod whose room was taken by others.
	mostRounds = 3
)

// promise is room on a node for a pod, when the victims are gone.
type promise struct {
	node    string
	need    amounts
	victims []*corev1.Pod
	until   time.Time
}

// promises contains the room that is kept for pods.
type promises struct {
	now func() time.Time

	mu     sync.Mutex
	byPod  map[types.UID]promise
	failed map[types.UID]failure
}

// failure is that a pod did not fit after evictions.
type failure struct {
	rounds int
	at     time.Time
}

func newPromises(now func() time.Time) *promises {
	return &promises{now: now, byPod: map[types.UID]promise{}, failed: map[types.UID]failure{}}
}

func (p *promises) make(pod types.UID, node string, need amounts, victims []*corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.byPod[pod] = promise{node: node, need: need, victims: victims, until: p.now().Add(promiseTime)}
}

// of returns the promise for a pod.
func (p *promises) of(pod types.UID) (promise, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	found, ok := p.byPod[pod]
	return found, ok
}

// none reports whether no room is kept for any pod.
func (p *promises) none() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.byPod) == 0
}

// on returns the amounts that are kept on a node for other pods, or nil if there are none.
func (p *promises) on(node string, without types.UID) amounts {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.byPod) == 0 {
		return nil
	}
	var kept amounts
	for pod, one := range p.byPod {
		switch {
		case p.now().After(one.until):
			delete(p.byPod, pod)
		case one.node == node && pod != without:
			if kept == nil {
				kept = amounts{}
			}
			kept.add(one.need, 1)
		}
	}
	return kept
}

// drop forgets a pod that has a node or is gone.
func (p *promises) drop(pod types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byPod, pod)
	delete(p.failed, pod)
}

// fail records that a pod did not fit although its victims are gone: because others took the room, or for another reason, so that evictions do not help.
func (p *promises) fail(pod types.UID, taken bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byPod, pod)
	f := p.failed[pod]
	f.at, f.rounds = p.now(), f.rounds+1
	if !taken {
		f.rounds = mostRounds
	}
	p.failed[pod] = f
}

// mayEvict reports whether pods may be evicted for one.
func (p *promises) mayEvict(pod types.UID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.failed[pod]
	if f.rounds >= mostRounds && p.now().Sub(f.at) >= retryTime {
		delete(p.failed, pod)
		return true
	}
	return f.rounds < mostRounds
}
