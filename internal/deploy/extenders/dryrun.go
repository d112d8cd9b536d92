package extenders

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
)

// Plan returns the plans that Deploy runs: the extender's plan, unless it is a sidecar, and each
// scheduler's plan. entry is the extender for the default scheduler's request. The address of a
// Service that does not exist yet is its name. Without d.Cluster no cluster is asked.
func Plan(ctx context.Context, d deploy.Deps, x Deployment) (plans []*deploy.Plan, entry v1alpha1.Extender, err error) {
	run, err := newRun(d, x)
	if err != nil {
		return nil, entry, err
	}
	plans, err = run.plans(ctx)
	return plans, run.entry, err
}

// plans plans everything that the run's steps deploy.
func (e *extenderRun) plans(ctx context.Context) (plans []*deploy.Plan, err error) {
	if e.Cluster != nil {
		if err := e.inspect(ctx); err != nil {
			return nil, err
		}
	}
	if !e.x.Options.Sidecar {
		if err := e.planExtender(ctx); err != nil {
			return nil, err
		}
		plans = append(plans, e.plan)
	}
	if err := e.planWiring(ctx); err != nil {
		return nil, err
	}
	for _, target := range e.targets() {
		plan, _, err := e.planTarget(ctx, target)
		if err != nil {
			return nil, err
		}
		plans = append(plans, plan)
	}
	return plans, nil
}

// live returns the extender's objects in the cluster.
func (e *extenderRun) live(ctx context.Context) ([]*unstructured.Unstructured, error) {
	if e.Cluster == nil {
		return nil, nil
	}
	return e.Cluster.Owned(ctx, e.name(), e.namespace())
}

// planExtender plans the extender itself, in place of its current revision.
func (e *extenderRun) planExtender(ctx context.Context) error {
	live, err := e.live(ctx)
	if err != nil {
		return err
	}
	if e.plan, err = newPlan(e.x.Release, live, e.x.Options, e.anonymous(live)); err != nil || e.Cluster == nil {
		return err
	}
	if e.previous, err = e.Cluster.LastDeployed(ctx, e.namespace(), e.name()); err != nil {
		return err
	}
	e.plan.Replaces = numberOf(e.previous)
	return nil
}

// planWiring decides how schedulers call the extender.
func (e *extenderRun) planWiring(ctx context.Context) (err error) {
	if e.x.Options.Sidecar {
		e.entry, err = e.x.Options.sidecar()
		return err
	}
	live, err := e.live(ctx)
	if err == nil {
		e.entry = withService(e.x.Options.Extender, e.namespace(), e.plan.Extender.Certificates.CA, live)
	}
	return err
}

// planTarget returns the plan for a scheduler that calls the extender, and the scheduler's revision
// that it replaces.
func (e *extenderRun) planTarget(ctx context.Context, target SchedulerRef) (*deploy.Plan, *apply.Revision, error) {
	last, err := lastOf(ctx, e.Deps, target)
	if err != nil {
		return nil, nil, err
	}
	entry := e.entryIn(target.Namespace)
	before, wired := e.wired[target]
	at := *entry.Deployed
	at.Added = !wired || before.Deployed.Added
	entry.Deployed = &at
	plan, err := deploy.PlanOf(last)
	if err != nil {
		return nil, nil, err
	}
	return plan, last, plan.SetExtenders([]v1alpha1.Extender{entry})
}

// DryRun runs [deploy.DryRun] for each plan, and returns all changes.
func DryRun(ctx context.Context, d deploy.Deps, plans []*deploy.Plan) (apply.ChangeSet, error) {
	var all apply.ChangeSet
	for _, plan := range plans {
		changes, err := deploy.DryRun(ctx, d, plan)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", plan.Name, err)
		}
		all = append(all, changes...)
	}
	return all, nil
}
