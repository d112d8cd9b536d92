package ask

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// mostTries limits how often a question is asked whose answer does not count.
const mostTries = 3

// errQuestionTime is returned about a question that takes too long.
var errQuestionTime = problem.Errorf("ask about fewer pods", "the scheduler worked on the question for %s without an end",
	questionTime)

// answer answers a question of a client. It returns [ErrBusy] if too many questions wait. A
// question whose context ends gives up its place.
func (e *engine) answer(ctx context.Context, client string, q Question, s *scenario.Scenario) (*Answer, error) {
	begin := time.Now()
	select {
	case e.places <- struct{}{}:
	default:
		return nil, ErrBusy
	}
	defer func() { <-e.places }()
	c, err := readClasses(ctx, e.kube, e.scheduler.Release, namespaces(s))
	if err != nil {
		return nil, err
	}
	if err := e.turn.take(ctx, client); err != nil {
		return nil, err
	}
	defer e.turn.end()
	ctx, cancel := context.WithTimeoutCause(ctx, questionTime, errQuestionTime)
	defer cancel()
	if err := e.ensure(ctx); err != nil {
		return nil, err
	}
	v := e.running.view
	templates, err := v.claimTemplates(ctx, s)
	if err != nil {
		return nil, err
	}
	b, err := c.build(s, v.has, templates)
	if err != nil {
		return nil, err
	}
	asked := inquiry{e: e, v: v, question: q, classes: c, built: b}
	if err := asked.prepare(ctx); err != nil {
		return nil, err
	}
	answer := &Answer{Scheduler: e.nameFor(q), Release: e.scheduler.Release.String(),
		AgeSeconds: v.age().Seconds(), Notes: b.notes}
	o, err := asked.try(ctx, variant{})
	if err != nil && errors.Is(context.Cause(ctx), errQuestionTime) {
		return nil, errQuestionTime
	}
	if err != nil {
		return nil, err
	}
	asked.report(answer, o)
	if answer.Fits == No && (q.Changes == nil || *q.Changes) {
		if answer.Changes, err = asked.changes(ctx, o); err != nil {
			return nil, err
		}
	}
	answer.Seconds = time.Since(begin).Seconds()
	return answer, nil
}

// nameFor returns the name of the scheduler for a question.
func (e *engine) nameFor(q Question) string {
	if q.Scheduler != "" {
		return q.Scheduler
	}
	return e.scheduler.Request.Name
}

// has reports whether the cluster has a pod.
func (v *view) has(key string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	_, ok := v.pods[key]
	return ok
}

// inquiry is a question while it is answered, with its variants.
type inquiry struct {
	e        *engine
	v        *view
	question Question
	classes  *classes
	built    *built
	// other is a scheduler that pods name and that does not answer here.
	other string
}

// prepare leaves out the objects that the cluster already has.
func (i *inquiry) prepare(ctx context.Context) error {
	var left []scenario.Object
	for _, o := range i.built.others {
		path, ok := i.v.objectPath(o)
		if !ok {
			continue // the scheduler does not read it
		}
		switch found, err := i.v.readObject(ctx, path); {
		case err != nil:
			return err
		case found != nil:
			key, _ := o.Kind.Key(o.Fields)
			i.built.notes = append(i.built.notes, fmt.Sprintf("the cluster has %s %s: it is used as it is there", o.Kind.Name, key))
		default:
			left = append(left, o)
		}
	}
	i.built.others = left
	return i.checkClaims()
}

// objectPath returns the path of an object in the version in which the scheduler watches it.
func (v *view) objectPath(o scenario.Object) (path string, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if path, ok = v.pathOf(o.Kind.GroupResource()); !ok {
		return "", false
	}
	namespace, name := scenario.NameOf(o.Fields)
	if o.Kind.Namespaced || namespace != "" {
		path = strings.TrimSuffix(path, o.Kind.Resource) + "namespaces/" + url.PathEscape(namespace) + "/" + o.Kind.Resource
	}
	return path + "/" + url.PathEscape(name), true
}

// variant changes a question.
type variant struct {
	// pods is the number of pods, in the order of the queue. 0 means all.
	pods int
	// change changes a pod that belongs to the variant.
	change func(pod object)
	// others are additional objects.
	others []scenario.Object
}

// try asks the scheduler about a variant, again if the answer does not count.
func (i *inquiry) try(ctx context.Context, change variant) (*outcome, error) {
	var disturbed string
	for range mostTries {
		if err := i.e.ensure(ctx); err != nil {
			return nil, err
		}
		i.v = i.e.running.view
		t, err := i.trial(change)
		if err != nil {
			return nil, err
		}
		o, err := i.v.try(ctx, t)
		if err == nil && !o.fits() || ctx.Err() != nil && !errors.Is(err, errDirty) {
			// It may still try one of the pods.
			if busy := i.v.rehearse(context.WithoutCancel(ctx)); busy != nil {
				err = errors.Join(errDirty, busy)
			}
		}
		switch {
		case errors.Is(err, errDirty), err != nil && ctx.Err() == nil:
			i.e.s.Log.Warn("the scheduler is started again", zap.Error(err))
			if err := i.e.stop(); err != nil {
				return nil, err
			}
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			disturbed = err.Error()
			continue
		case err != nil:
			return nil, err
		case o.disturbed == "":
			return o, nil
		}
		disturbed = o.disturbed
	}
	return nil, fmt.Errorf("ask the scheduler %d times: %s", mostTries, disturbed)
}

// trial makes the pods for the scheduler.
func (i *inquiry) trial(change variant) (t trial, err error) {
	waiting := i.built.pods
	if change.pods > 0 {
		waiting = waiting[:change.pods]
	}
	for _, w := range waiting {
		fields, err := snapshot.Decode(w.Pod)
		if err != nil {
			return t, fmt.Errorf("read pod %s: %w", w.Key, err)
		}
		if change.change != nil {
			change.change(fields)
		}
		i.complete(fields)
		p := newAskedPod(fields)
		if reason := i.built.refused[w.Key]; reason != "" {
			p.skipped, p.refused, p.reason = true, true, reason
		} else if i.isGated(fields) {
			p.skipped, p.refused, p.reason = true, true, "it has spec.schedulingGates: no scheduler tries it until they are removed"
		}
		t.pods = append(t.pods, p)
	}
	t.others = slices.Concat(change.others, t.owned(i.built.others))
	return t, nil
}

// complete makes a pod one that waits for the scheduler.
func (i *inquiry) complete(pod object) {
	spec, metadata := child(pod, "spec"), child(pod, "metadata")
	if i.question.Scheduler != "" {
		spec["schedulerName"] = i.question.Scheduler
	}
	if name := text(spec, "schedulerName"); scenario.UseProfile(pod, i.e.profiles, i.e.scheduler.Request.Name) {
		i.other = name
	}
	if text(spec, "schedulerName") == "" {
		spec["schedulerName"] = "default-scheduler"
	}
	metadata["creationTimestamp"] = time.Now().UTC().Format(time.RFC3339)
	pod["apiVersion"], pod["kind"] = "v1", "Pod"
}

// isGated reports whether the API server keeps a pod from being scheduled.
func (i *inquiry) isGated(pod object) bool {
	gates, _ := child(pod, "spec")["schedulingGates"].([]any)
	return len(gates) > 0 && i.classes.release.Gates()["PodSchedulingReadiness"].Default
}

// unknown lists the facts that no answer of the engine contains.
func (e *engine) unknown() []string {
	return append([]string{
		"whether webhooks, policies and quotas of the API server change or refuse the pods",
		"pending pods of the cluster, and the room that a scheduler holds for them",
	}, slices.Concat(e.notEstablished, e.running.process.Notes)...)
}

// unknown lists facts that the answer to this question does not contain.
func (i *inquiry) unknown(o *outcome) []string {
	var all []string
	for _, p := range o.pods {
		switch {
		case p.failed:
			all = append(all, fmt.Sprintf("the decision about %s: the scheduler failed", p.key))
		case !p.decided():
			all = append(all, fmt.Sprintf("the decision about %s: the scheduler had none after %s", p.key, decisionTime))
		case strings.Contains(p.reason, unbound):
			all = append(all, fmt.Sprintf("the decision about %s: the cluster makes its volumes first", p.key))
		default:
			continue
		}
		if len(all) == 3 {
			break
		}
	}
	return all
}
