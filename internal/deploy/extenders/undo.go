package extenders

import (
	"context"
	"errors"
	"slices"

	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
)

// restore deploys the former revision of the extender again, or removes the extender if there was
// none.
func (e *extenderRun) restore(ctx context.Context, _ error) error {
	if e.plan == nil {
		return nil
	}
	return goBack(ctx, e.Deps, e.plan, e.previous, e.out.Revision, e.x.RunOptions)
}

// goBack deploys the previous revision again, or removes the objects of the plan if there is no
// previous revision.
func goBack(ctx context.Context, d deploy.Deps, plan *deploy.Plan, previous *apply.Revision, revision int,
	how deploy.RunOptions) error {
	switch {
	case how.NoRollback:
		return nil
	case previous == nil:
		_, err := deploy.Uninstall(ctx, d, plan.Namespace, plan.Name)
		return err
	case previous.Number == revision:
		return nil
	}
	return redeploy(ctx, d, previous, revision, how)
}

// redeploy deploys a revision again. replaces is the number of the revision that it replaces.
func redeploy(ctx context.Context, d deploy.Deps, revision *apply.Revision, replaces int, how deploy.RunOptions) error {
	plan, err := deploy.PlanOf(revision)
	if err != nil {
		return err
	}
	plan.Replaces, how.Verify = replaces, nil
	_, err = deploy.Deploy(ctx, d, plan, how)
	return err
}

// unwire deploys the former revisions of the schedulers that were changed.
func (e *extenderRun) unwire(ctx context.Context, _ error) error {
	if e.x.NoRollback {
		return nil
	}
	var failed error
	for _, c := range slices.Backward(e.changed) {
		failed = errors.Join(failed, redeploy(ctx, e.Deps, c.before, c.revision, e.x.RunOptions))
	}
	return failed
}
