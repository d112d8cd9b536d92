// Package rollout gives a scheduler the pods of its route step by step, and none of them any more
// as soon as a gate is violated.
//
// The deployed revision records the share and the state: a rollout that was killed continues from
// there.
package rollout

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
	"github.com/pmk-sched/pmk-sched/internal/rollout/stage"
)

// Options of a run.
type Options struct {
	deploy.RunOptions
	// Shadow runs the scheduler next to the cluster for a time, without changing anything, and returns
	// what it decided. It is called if there is a gate for it.
	Shadow func(ctx context.Context, duration time.Duration) (stage.Shadow, error)
	// Report tells the user how far the rollout is.
	Report func(text string)
}

// Result is how a rollout ended, or what it would begin with.
type Result struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	// Share of the route in percent, and the revision that has it.
	Share    int `json:"share"`
	Revision int `json:"revision,omitempty"`
	// Verdict and Reason, see [v1alpha1.RolloutState].
	Verdict string `json:"verdict,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// run is one run.
type run struct {
	Options
	session *session.Session
	spec    *spec.Spec
	rollout v1alpha1.Rollout
	deps    deploy.Deps
	result  Result
	// deployed is the revision that this run deployed last.
	deployed int
	pods     *observer
	kube     kubernetes.Interface
	api      *apply.Client
}

// Run checks everything, and gives the scheduler the pods of its route step by step. A violated
// gate is not an error: see Result.Verdict. If ctx ends, no pod is routed any more.
func Run(ctx context.Context, s *session.Session, sp *spec.Spec, o Options) (*Result, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	r, begin, err := prepare(ctx, s, sp, o)
	if err != nil || r.result.Verdict != "" {
		return r.done(err)
	}
	if begin != nil {
		begin, err = r.resume(ctx, begin)
	} else {
		begin, err = r.begin(ctx)
	}
	if err != nil || begin == nil {
		return r.done(err)
	}
	return r.done(r.follow(ctx, begin))
}

// Check checks everything, and returns what Run would begin with. It changes nothing.
func Check(ctx context.Context, s *session.Session, sp *spec.Spec) (*Result, error) {
	r, begin, err := prepare(ctx, s, sp, Options{})
	if err == nil && begin == nil && r.result.Verdict == "" {
		r.result.Share = stage.First(r.rollout)
	}
	return r.done(err)
}

func (r *run) done(err error) (*Result, error) {
	if r == nil {
		return nil, err
	}
	return &r.result, err
}

// prepare checks everything before anything changes. begin is the step of an earlier run from which
// this one continues, or nil. The result has a verdict if there is nothing to do.
func prepare(ctx context.Context, s *session.Session, sp *spec.Spec, o Options) (r *run, begin *step, err error) {
	r = &run{Options: o, session: s, spec: sp, result: Result{Name: sp.Name, Namespace: sp.Namespace}}
	routes := false
	if r.rollout, routes = sp.Rollout(); !routes {
		return nil, nil, problem.Invalidf("set spec.route in the file", "roll out scheduler %s: it has no route", sp.Name)
	}
	if err = r.connect(); err != nil {
		return nil, nil, err
	}
	deployed, err := readStep(ctx, r.deps, sp.Namespace, sp.Name)
	if err != nil {
		return nil, nil, err
	}
	share := stage.First(r.rollout)
	if deployed != nil && deployed.share > 0 {
		share = deployed.share
	}
	same, err := lifecycle.IsDeployed(ctx, s, sp.AtStep(share, &v1alpha1.RolloutState{}))
	if err != nil || deployed == nil || deployed.share == 0 {
		return r, nil, err
	}
	r.result.Share, r.result.Revision = deployed.share, deployed.revision.Number
	steps := r.rollout.StepsOrDefault()
	switch {
	case same && deployed.rollout.Runs():
		r.report("continuing: scheduler %s is at a share of %d %%", sp.Name, deployed.share)
		return r, deployed, nil
	case same && deployed.share >= steps[len(steps)-1]:
		r.result.Verdict, r.result.Reason = v1alpha1.RolloutPassed, "it is deployed at this share already"
		return r, nil, nil
	case deployed.rollout.Runs():
		return r, nil, nil // of another configuration, which this one replaces from the first step on
	default:
		return nil, nil, problem.Invalidf("choose another --name, or end its route with `pmk-sched deploy --route share=0` first",
			"roll out scheduler %s: %d %% of the pods of its route get another configuration of it now", sp.Name,
			deployed.share)
	}
}

// connect creates the clients.
func (r *run) connect() (err error) {
	if r.deps, err = deploy.Connect(r.session); err != nil {
		return err
	}
	if r.kube, err = kubernetes.NewForConfig(r.deps.Config); err != nil {
		return fmt.Errorf("create client for %s: %w", r.deps.Config.Host, err)
	}
	r.api, err = apply.New(r.deps.Config, apply.Options{Log: r.deps.Log})
	return err
}

// begin runs the shadow and deploys the scheduler at the first step. It returns nil if the shadow
// ends the rollout.
func (r *run) begin(ctx context.Context) (*step, error) {
	if err := r.judgeShadow(ctx); err != nil || r.result.Verdict != "" {
		return nil, err
	}
	// The watch has to bring the first pods: the times in objects are whole seconds.
	if err := r.watch(ctx); err != nil {
		return nil, err
	}
	first := r.spec.AtStep(stage.First(r.rollout), &v1alpha1.RolloutState{})
	if _, _, err := lifecycle.Deploy(ctx, r.session, first, r.RunOptions); err != nil {
		return nil, err
	}
	return r.current(context.WithoutCancel(ctx)) // pods are routed from now on: follow ends it
}

// judgeShadow runs the shadow if a gate is for it, and sets the verdict unless the gate is met.
func (r *run) judgeShadow(ctx context.Context) error {
	if _, gated := r.rollout.Gate(v1alpha1.GateAgreement); !gated {
		return nil
	}
	if r.Shadow == nil {
		return problem.Invalidf("", "gate %s: no shadow can run here", v1alpha1.GateAgreement)
	}
	seen, err := r.Shadow(ctx, r.rollout.ShadowTimeOrDefault())
	if err != nil {
		return err
	}
	decision := stage.JudgeShadow(r.rollout, seen)
	r.result.Verdict, r.result.Reason = decision.Verdict, decision.Reason
	if decision.Verdict == "" {
		r.report("shadow: %s", decision.Reason)
	}
	return nil
}

func (r *run) report(format string, args ...any) {
	if r.Report != nil {
		r.Report(fmt.Sprintf(format, args...))
	}
}
