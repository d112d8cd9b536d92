package rollout

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
	"github.com/pmk-sched/pmk-sched/internal/rollout/stage"
)

// Poll is the rollout of a scheduler that is judged look by look, by a caller that must not wait.
// It lists pods instead of watching them: their times are whole seconds.
type Poll struct {
	run run
	// revision is the number of the step whose pods are observed, 0 before the first.
	revision int
}

// NewPoll returns the rollout of a deployed scheduler.
func NewPoll(s *session.Session, namespace, name string) (*Poll, error) {
	p := &Poll{run: run{session: s, pods: newObserver(name, time.Time{}),
		result: Result{Name: name, Namespace: namespace}}}
	if err := p.run.connect(); err != nil {
		return nil, err
	}
	return p, nil
}

// AtStep returns the spec at the step from which a deployment of it begins. A changed spec begins
// with the first step, unless its scheduler has gone through all of them; otherwise the spec keeps
// the step, or the end, of its rollout.
func (p *Poll) AtStep(ctx context.Context, sp *spec.Spec, changed bool) (*spec.Spec, error) {
	r, routes := sp.Rollout()
	if !routes {
		return sp, nil
	}
	deployed, err := readStep(ctx, p.run.deps, sp.Namespace, sp.Name)
	if err != nil {
		return nil, err
	}
	first := sp.AtStep(stage.First(r), &v1alpha1.RolloutState{})
	switch {
	case deployed == nil:
		return first, nil
	case changed && (deployed.share == 0 || deployed.rollout.Runs()):
		return first, nil
	case deployed.rollout == nil:
		return sp.AtStep(deployed.share, nil), nil
	default:
		return sp.AtStep(deployed.share, deployed.rollout.State), nil
	}
}

// Look looks at the pods of the deployed step, and deploys what follows. running is false if there
// is no rollout, or if it has ended; then the result has a verdict.
func (p *Poll) Look(ctx context.Context, r v1alpha1.Rollout) (result Result, running bool, err error) {
	p.run.rollout = r
	s, err := readStep(ctx, p.run.deps, p.run.result.Namespace, p.run.result.Name)
	if err != nil || s == nil || s.rollout == nil || s.rollout.State == nil {
		return p.run.result, false, err
	}
	p.run.result.Share, p.run.result.Revision = s.share, s.revision.Number
	p.run.result.Verdict, p.run.result.Reason = s.rollout.State.Verdict, s.rollout.State.Reason
	if !s.rollout.Runs() {
		return p.run.result, false, nil
	}
	if p.revision != s.revision.Number {
		p.run.pods.begin(s.revision.Created)
	}
	p.revision = s.revision.Number
	decision, err := p.decide(ctx, s)
	if err != nil || decision.Share == s.share && decision.Verdict == "" {
		return p.run.result, true, err
	}
	state := v1alpha1.RolloutState{Verdict: decision.Verdict, Reason: decision.Reason}
	if _, err = p.run.set(ctx, s, decision.Share, state); err != nil {
		return p.run.result, true, err
	}
	p.run.result.Verdict, p.run.result.Reason = decision.Verdict, decision.Reason
	return p.run.result, decision.Verdict == "", nil
}

// decide decides what follows a step.
func (p *Poll) decide(ctx context.Context, s *step) (stage.Decision, error) {
	if err := p.list(ctx); err != nil {
		return stage.Decision{}, err
	}
	registration, err := p.run.registration(s)
	if err != nil {
		return stage.Decision{}, err
	}
	now := time.Now()
	return stage.Next(p.run.rollout, s.share, stage.Observation{Elapsed: now.Sub(s.revision.Created),
		Pods: p.run.pods.look(now), Lost: registration.lost(ctx)}), nil
}

// list records the pods of the scheduler.
func (p *Poll) list(ctx context.Context) error {
	options := metav1.ListOptions{FieldSelector: "spec.schedulerName=" + p.run.result.Name, Limit: page}
	exist := map[types.UID]bool{}
	for list, err := range kubeapi.Pages(ctx, p.run.kube.CoreV1().Pods(metav1.NamespaceAll).List, options) {
		if err != nil {
			return fmt.Errorf("list the pods of scheduler %s: %w", p.run.result.Name, err)
		}
		for i := range list.Items {
			exist[list.Items[i].UID] = true
			p.run.pods.see(&list.Items[i], false, time.Now())
		}
	}
	p.run.pods.keep(exist, time.Now())
	return nil
}

// page is the number of pods that are read at once.
const page = 500
