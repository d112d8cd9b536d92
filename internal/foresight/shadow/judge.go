package shadow

import (
	"sync"
	"time"

	"go.uber.org/zap"
)

const (
	// decisionTime is the time limit for a decision.
	decisionTime = 15 * time.Second
	// forgetTime is the time limit for the shadow to forget a decision after its binding was refused.
	forgetTime = 5 * time.Second
	// evictionTime is the delay after the shadow in which the observed scheduler may evict a pod: a
	// scheduler from 1.32 on reports first that there is no node for the evicting pod.
	evictionTime = time.Minute
)

// judge asks the shadow about pods, one at a time, and remembers both schedulers' decisions.
type judge struct {
	log *zap.Logger
	// turn is held while the shadow is asked.
	turn sync.Mutex

	mu       sync.Mutex // of everything below
	asked    *question
	copies   int
	watching bool                // the shadow has read the pods, and watches them
	pods     map[string]standing // of the cluster, by UID
	verdicts map[string]verdict  // by UID
	// evictions are the evictions that the shadow requested, and when. running are the keys of pods
	// with a node that are not already being deleted.
	evictions map[Eviction]time.Time
	running   map[string]bool
	missed    int
}

// standing is a pod's known state: it waits for the observed scheduler, or it is on a node. The
// zero value means that the pod is unknown.
type standing int

const (
	waits standing = iota + 1
	bound
)

func newJudge(log *zap.Logger) *judge {
	return &judge{
		log: log, pods: map[string]standing{}, verdicts: map[string]verdict{}, evictions: map[Eviction]time.Time{},
		running: map[string]bool{},
	}
}

// watches remembers that the shadow has all pods.
func (j *judge) watches() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.watching = true
}

// wait remembers a pod that has no node yet.
func (j *judge) wait(uid string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.pods[uid] = waits
}

// waits reports whether a pod had no node before.
func (j *judge) waits(uid string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.pods[uid] == waits
}

// bound remembers a pod with a node.
func (j *judge) bound(p *pod) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.place(p)
}

// place remembers a pod with a node. j is locked.
func (j *judge) place(p *pod) {
	j.pods[p.uid] = bound
	if p.terminating {
		j.deleted(p)
		return
	}
	j.running[p.key()] = true
}

// deleted forgets that the shadow wanted to evict a pod, if the observed scheduler did so too. j is
// locked.
func (j *judge) deleted(p *pod) {
	if !j.running[p.key()] {
		return // known already
	}
	delete(j.running, p.key())
	for e, at := range j.evictions {
		if e.Namespace == p.namespace && e.Name == p.name && time.Since(at) < evictionTime {
			delete(j.evictions, e)
		}
	}
}

// found remembers a pod that a list has on a node. An observed one is missed if it was not there
// when the shadow read the pods before.
func (j *judge) found(p *pod, observed bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.pods[p.uid] != bound && observed && j.watching {
		j.missed++
	}
	j.place(p)
}

// forget forgets a pod that is gone.
func (j *judge) forget(p *pod) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.pods, p.uid)
	j.deleted(p)
}

// refused reports whether the shadow was asked about a pod already, when the observed scheduler had
// found no node.
func (j *judge) refused(uid string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, known := j.verdicts[uid]
	return known
}

// provision records the node for which the shadow wants to have a volume for a pod in a namespace.
func (j *judge) provision(namespace, node string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.asked != nil && j.asked.namespace == namespace {
		j.asked.provisions = node
	}
}

// evict records that the shadow deletes a pod, unless that is deleted anyway: the shadow may not
// have noticed yet.
func (j *judge) evict(namespace, name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.running[namespace+"/"+name] {
		return
	}
	e := Eviction{Namespace: namespace, Name: name}
	if j.asked != nil {
		e.For = j.asked.namespace + "/" + j.asked.name
	}
	j.evictions[e] = time.Now()
}

// report adds everything that was recorded to a report.
func (j *judge) report(r *Report) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r.Differences, r.Noise, r.Undecided, r.Evictions = []Difference{}, []Difference{}, []Difference{}, []Eviction{}
	for _, v := range j.verdicts {
		r.add(v)
	}
	for e := range j.evictions {
		r.Evictions = append(r.Evictions, e)
	}
	r.Missed = j.missed
	r.sort()
}
