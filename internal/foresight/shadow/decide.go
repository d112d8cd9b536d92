package shadow

import (
	"context"
	"strconv"
	"time"

	"go.uber.org/zap"
)

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

// stage shows a copy of a pod to the shadow and removes it. round counts the copies that are shown
// for one decision. settle waits until the shadow has processed the events before, and reports
// whether it may not have processed them.
type stage interface {
	show(p *pod, uid string, round int) error
	hide(p *pod, uid string, round int) error
	settle(ctx context.Context) (waited bool, err error)
}

// decide asks the shadow about a pod and compares its decision with node, the observed scheduler's
// choice. node is empty if that found none.
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
