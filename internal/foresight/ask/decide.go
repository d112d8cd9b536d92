package ask

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
)

const (
	// forgetTime is the time limit for the scheduler to forget a question's pods.
	forgetTime = 10 * time.Second
	// settleTime is the time for the scheduler, which has nothing else to do, to process events other
	// than those of pods without a node, which it processes before it decides about them.
	settleTime = 100 * time.Millisecond
	// mostRounds limits how often refused pods are tried again.
	mostRounds = 10
)

// errDirty is returned if the scheduler may still count a question's pods.
var errDirty = errors.New("the scheduler did not forget the pods of a question")

// errUndecided is returned if the scheduler does not decide about a pod that fits on no node.
var errUndecided = errors.New("the scheduler does not decide about a pod that fits on no node")

// trial is one question to the scheduler: pods, and the objects that they need.
type trial struct {
	pods   []*askedPod
	others []scenario.Object
}

// outcome is the scheduler's answer to a trial.
type outcome struct {
	pods    []*askedPod
	evicted []*evictedPod
	// ignored are the kinds of objects that the scheduler does not watch.
	ignored map[string]bool
	// disturbed is the reason why the outcome does not count.
	disturbed string
	// undecided is set if the scheduler had no decision about a pod in time.
	undecided bool
}

// fits reports whether every pod has a node.
func (o *outcome) fits() bool {
	for _, p := range o.pods {
		if p.node == "" {
			return false
		}
	}
	return true
}

// try asks the scheduler, and makes it forget everything again. The error is errDirty if it may not
// have forgotten.
func (v *view) try(ctx context.Context, t trial) (o *outcome, err error) {
	q := newAsked(t.pods)
	for _, o := range t.others {
		if o.Kind.Name == claimKind {
			namespace, name := scenario.NameOf(o.Fields)
			q.claims[namespace+"/"+name] = o.Fields
		}
	}
	v.mu.Lock()
	v.asked = q
	reads := v.reads
	v.mu.Unlock()
	o = &outcome{pods: t.pods, ignored: map[string]bool{}}
	shown, decideErr := v.decide(ctx, q, t, o)
	v.mu.Lock()
	q.ending = true
	if o.disturbed = q.disturbed; v.reads != reads {
		o.disturbed = "the scheduler has read the objects of the cluster again"
	}
	for _, e := range q.evicted {
		o.evicted = append(o.evicted, e)
	}
	v.mu.Unlock()
	// Also if the client is gone.
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*forgetTime)
	defer cancel()
	if err := v.forget(ending, q, shown); err != nil {
		return o, errors.Join(errDirty, err)
	}
	return o, decideErr
}

// decide shows the pods to the scheduler and waits for its decisions. shown are the other objects
// that it sees.
func (v *view) decide(ctx context.Context, q *asked, t trial, o *outcome) (shown []scenario.Object, err error) {
	for _, other := range t.others {
		other.Fields = maps.Clone(other.Fields)
		other.Fields["kind"] = other.Kind.Name
		watched, err := v.inject(ctx, other.Kind.GroupResource(), "ADDED", other.Fields)
		if err != nil {
			return shown, err
		}
		if !watched {
			o.ignored[other.Kind.Name] = true
			continue
		}
		shown = append(shown, other)
	}
	if len(shown) > 0 {
		if err := clock.Sleep(ctx, settleTime); err != nil {
			return shown, err
		}
	}
	next := t.pods
	for range mostRounds {
		for _, p := range next {
			if p.skipped {
				continue
			}
			if _, err := v.inject(ctx, "pods", "ADDED", p.fields); err != nil {
				return shown, err
			}
		}
		decided, err := v.await(ctx, q, decisionTime, func() bool {
			if q.disturbed != "" {
				return true
			}
			for _, p := range t.pods {
				if !p.decided() {
					return false
				}
			}
			return true
		})
		if err != nil {
			return shown, err
		}
		if o.undecided = !decided; o.undecided {
			return shown, nil
		}
		v.mu.Lock()
		disturbed := q.disturbed != ""
		if next = q.again(); disturbed {
			next = nil
		}
		v.mu.Unlock()
		if len(next) == 0 {
			return shown, nil
		}
		for _, p := range next {
			if _, err := v.inject(ctx, "pods", "DELETED", p.fields); err != nil {
				return shown, err
			}
			v.mu.Lock()
			p.renew()
			v.mu.Unlock()
		}
	}
	return shown, nil
}

// forget removes a question's objects from the scheduler's view, and shows it the evicted pods
// again. The pods that the scheduler counts on nodes are the last ones of the question that it
// knows: it reports each of them when it has forgotten it.
func (v *view) forget(ctx context.Context, q *asked, shown []scenario.Object) error {
	var held []*askedPod
	v.mu.Lock()
	for _, p := range q.pods {
		if p.held {
			held = append(held, p)
		}
	}
	v.mu.Unlock()
	for _, p := range q.pods {
		if !p.held && !p.skipped {
			if _, err := v.inject(ctx, "pods", "DELETED", p.fields); err != nil {
				return err
			}
		}
	}
	for _, p := range held {
		close(p.release)
	}
	forgotten, err := v.await(ctx, q, forgetTime, func() bool {
		for _, p := range held {
			if !p.forgotten {
				return false
			}
		}
		return true
	})
	switch {
	case err != nil:
		return err
	case !forgotten:
		return fmt.Errorf("no report within %s that %s was not bound", forgetTime, held[0].key)
	}
	for _, p := range held {
		if _, err := v.inject(ctx, "pods", "DELETED", p.fields); err != nil {
			return err
		}
	}
	for i := len(shown) - 1; i >= 0; i-- {
		if _, err := v.inject(ctx, shown[i].Kind.GroupResource(), "DELETED", shown[i].Fields); err != nil {
			return err
		}
	}
	restored, err := v.restore(q)
	if err != nil {
		return err
	}
	if restored || len(shown) > 0 {
		return clock.Sleep(ctx, settleTime)
	}
	return nil
}

// restore shows the evicted pods to the scheduler again, and ends the question.
func (v *view) restore(q *asked) (restored bool, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asked = nil
	for _, e := range q.evicted {
		if e.gone {
			continue
		}
		w := v.watches[podsPath]
		if w == nil || !w.synced {
			return restored, errors.New("the scheduler does not watch pods")
		}
		if err := w.write("ADDED", e.fields); err != nil {
			return restored, err
		}
		restored = true
	}
	return restored, nil
}

// probeName names the pod of a rehearsal.
const probeName = "pmk-sched-ask-probe"

// rehearse asks the scheduler about a pod that fits on no node. It answers when it has read all
// objects, and has ended what it did before.
func (v *view) rehearse(ctx context.Context) error {
	probe := newAskedPod(object{
		"metadata": object{"namespace": "default", "name": probeName},
		"spec": object{
			"schedulerName": v.profile,
			"containers":    []any{object{"name": "none", "image": "none"}},
			"nodeSelector":  object{"pmk-sched.io/ask-probe": "none"},
			"priority":      0, "preemptionPolicy": "Never", "restartPolicy": "Always", "terminationGracePeriodSeconds": 0,
		},
		"status": object{"phase": "Pending"},
	})
	o, err := v.try(ctx, trial{pods: []*askedPod{probe}})
	switch {
	case err != nil:
		return err
	case o.undecided:
		return errUndecided
	}
	return nil
}
