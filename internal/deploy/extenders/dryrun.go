package extenders

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
)

// Plan returns the plans that Deploy would run, and how a scheduler in a namespace would call the extender: the plan of the extender, unless
// it is a sidecar, and that of each scheduler. Where d has no Applier no cluster is asked.
func Plan(ctx context.Context, d deploy.Deps, x Deployment) (plans []*deploy.Plan, wiring func(namespace string) manifest.Wiring, err error) {
	run, err := newRun(d, x)
	if err != nil {
		return nil, wiring, err
	}
	var live []*unstructured.Unstructured
	if d.Applier != nil {
		if err := run.inspect(ctx); err != nil {
			return nil, wiring, err
		}
		if live, err = d.Applier.Owned(ctx, run.name(), run.namespace()); err != nil {
			return nil, wiring, err
		}
	}
	if x.Options.Sidecar {
		run.wiring, err = run.x.Options.sidecarWiring()
	} else if run.plan, err = newPlan(x.Release, live, run.x.Options, run.anonymous(live)); err == nil {
		plans, run.wiring = append(plans, run.plan), serviceWiring(x.Options.Call, run.plan, live)
	}
	if err != nil {
		return nil, wiring, err
	}
	for _, target := range run.targets() {
		last, err := lastOf(ctx, d, target)
		if err != nil {
			return nil, wiring, err
		}
		plan, err := run.rewirePlan(last, target)
		if err != nil {
			return nil, wiring, err
		}
		plans = append(plans, plan)
	}
	return plans, run.wiringIn, nil
}

// DryRun does for each plan what [deploy.DryRun] does.
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
