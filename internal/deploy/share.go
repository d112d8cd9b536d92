package deploy

import (
	"context"
	"fmt"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/steps"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
)

// PlanShare returns the plan that deploys a revision with another share of its route, for
// [SetShare]. All other objects are the revision's: no replica restarts. The request records the
// state of the rollout, for which a revision is saved also if no object changes.
func PlanShare(revision *apply.Revision, share int, state v1alpha1.RolloutState) (*Plan, error) {
	plan, err := PlanOf(revision)
	if err != nil {
		return nil, err
	}
	if plan.Request == nil || plan.Request.Spec.Route == nil || plan.Scheduler.Route == nil {
		return nil, problem.Invalidf("deploy it with --route", "revision %d of %s has no route", revision.Number,
			revision.Name)
	}
	spec := &plan.Request.Spec
	if spec.Rollout == nil {
		spec.Rollout = &v1alpha1.Rollout{}
	}
	spec.Route.Share, plan.Scheduler.Route.Rule.Route.Share, spec.Rollout.State = &share, &share, &state
	rendered, err := manifest.Objects(plan.Scheduler)
	if err != nil {
		return nil, fmt.Errorf("render scheduler %s: %w", plan.Name, err)
	}
	routing, _ := registrations(rendered)
	_, others := registrations(revision.Objects)
	plan.Objects, plan.rerecord = append(others, routing...), true
	plan.recorded = plan.Objects
	plan.Origin = fmt.Sprintf("rollout: a share of %d %%", share)
	if state.Verdict != "" {
		plan.Origin += ", " + state.Verdict
	}
	return plan, nil
}

// SetShare runs a plan from [PlanShare]: it changes what registers the route and nothing else, also
// if the scheduler is not stable. A failure restores the former share.
func SetShare(ctx context.Context, d Deps, plan *Plan) (*Outcome, error) {
	d.Preflight = nil // the revision that the plan changes is deployed
	run := &deployRun{Deps: d, plan: plan}
	err := steps.Run(ctx, []steps.Step{
		{Name: "find objects", Do: run.preflight},
		{Name: "lock", Hold: run.takeLock, Always: run.lock.release},
		{Name: "save revision", Do: run.saveRevision, Undo: run.markFailed},
		{Name: "route pods", Do: run.routePods, Undo: run.restoreRoute},
		{Name: "mark deployed", Do: run.markDeployed, Commit: true},
		{Name: "prune", Do: run.prune},
	}, d.OnStep)
	if err != nil {
		return nil, withChanges(err, run.outcome.Changes)
	}
	return &run.outcome, nil
}

// restoreRoute registers the former route again.
func (d *deployRun) restoreRoute(ctx context.Context, _ error) error {
	if d.previous == nil {
		return nil
	}
	routing, _ := registrations(d.previous.Objects)
	_, err := d.Cluster.Apply(ctx, routing)
	return err
}
