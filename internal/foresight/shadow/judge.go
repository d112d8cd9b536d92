package shadow

import (
	"context"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"
)

const (
	// decisionTime is how long a decision may take.
	decisionTime = 15 * time.Second
	// forgetTime is how long the shadow may take to forget a decision after its binding was refused.
	forgetTime = 5 * time.Second
	// evictionTime is how much later than the shadow the observed scheduler may evict a pod: a
	// scheduler from 1.32 on reports first that there is no node for the other pod.
	evictionTime = time.Minute
)

// judge asks the shadow about pods, one at a time, and remembers the decisions of both schedulers.
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

// standing is the known state of a pod: it waits for the observed scheduler, or it is on a node.
// The zero value means that the pod is unknown.
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

// question is a pod that the shadow looks at.
type question struct {
	namespace, name, uid string
	// provisions is the node for which the shadow wants to have a volume.
	provisions string
	// answer has room for a refused binding and the failure that the shadow reports when it does not
	// count the pod on a node any more.
	answer chan answer
}

// await returns the next answer; ok is false if there is none in time.
func (q *question) await(ctx context.Context, limit time.Duration) (a answer, ok bool, err error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return a, false, ctx.Err()
	case <-timer.C:
		return a, false, nil
	case a = <-q.answer:
		return a, true, nil
	}
}

// answer is the shadow's decision: a node, or the reason why there is none. None at all is
// undecided.
type answer struct {
	node, reason string
	undecided    bool
	// refused is set for a binding, which the proxy refuses.
	refused bool
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

// stage shows a copy of a pod to the shadow and removes it. round counts the copies that are shown
// for one decision. settle waits until the shadow has processed the events before, and reports
// whether it may not have processed them.
type stage interface {
	show(p *pod, uid string, round int) error
	hide(p *pod, uid string, round int) error
	settle(ctx context.Context) (waited bool, err error)
}

// decide asks the shadow about a pod and compares its decision with node, the choice of the
// observed scheduler. node is empty if that found none.
func (j *judge) decide(ctx context.Context, s stage, p *pod, node string) error {
	j.turn.Lock()
	defer j.turn.Unlock()
	v := verdict{Difference: Difference{Namespace: p.namespace, Name: p.name, Observed: node}}
	selected, round := draws{nodes: map[string]bool{}}, 0
	for ; ; round++ {
		a, err := j.ask(ctx, s, p, round)
		if err != nil {
			return err
		}
		if round == 0 && a.node != node && !a.undecided {
			switch waited, err := s.settle(ctx); {
			case err != nil:
				return err
			case waited:
				continue
			}
		}
		if selected.n == 0 {
			v.Node, v.Reason = a.node, a.reason
		}
		selected.add(a.node)
		settled := false
		v.tied, settled = selected.tied(node)
		if v.undecided = a.undecided; settled || a.undecided || v.Node == "" || node == "" {
			break
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.verdicts[p.uid] = v
	j.log.Debug("decided", zap.String("pod", p.key()), zap.String("node", v.Node), zap.String("observed", node),
		zap.Int("asked", round+1))
	return nil
}

// ask asks the shadow once. Each copy of a pod has its own UID: the shadow may still be busy with
// the previous copy.
func (j *judge) ask(ctx context.Context, s stage, p *pod, round int) (answer, error) {
	q := &question{namespace: p.namespace, name: p.name, answer: make(chan answer, 2)}
	j.mu.Lock()
	q.uid = p.uid + "-shadow-" + strconv.Itoa(j.copies)
	j.asked, j.copies = q, j.copies+1
	j.mu.Unlock()
	defer func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.asked = nil
	}()
	if err := s.show(p, q.uid, round); err != nil {
		return answer{}, err
	}
	a, decided, err := q.await(ctx, decisionTime)
	switch {
	case err != nil:
		return answer{}, err
	case !decided:
		a = answer{undecided: true, reason: "no decision after " + decisionTime.String()}
	case a.refused:
		switch _, reported, err := q.await(ctx, forgetTime); {
		case err != nil:
			return answer{}, err
		case !reported:
			j.log.Warn("the shadow does not report a pod that it could not bind", zap.String("pod", p.key()))
		}
	}
	return a, s.hide(p, q.uid, round)
}

// answer records a decision about a pod. If uid is empty, the decision is about the pod in
// question. It reports whether the shadow was asked about the pod and had not answered before.
func (j *judge) answer(namespace, name, uid string, a answer) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	q := j.asked
	if q == nil || q.namespace != namespace || q.name != name || uid != "" && uid != q.uid {
		return false
	}
	if a.undecided && q.provisions != "" { // it does not bind the pod, since it has no volume
		a = answer{node: q.provisions}
	}
	select {
	case q.answer <- a:
		return true
	default: // it has answered before
		return false
	}
}

// provision records the node for which the shadow wants to have a volume for a pod of a namespace.
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
