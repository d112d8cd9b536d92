package extenders

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"sync"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/steps"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
)

// restore deploys the extender's former revision again, or removes the extender if there was none.
// It does neither while a scheduler still calls the extender as it is now: a scheduler whose
// extender is gone and not ignorable schedules nothing.
func (e *extenderRun) restore(ctx context.Context, cause error) error {
	if e.deployed == nil || unchanged(e.previous, e.deployed, e.x.RunOptions) {
		return nil
	}
	if err := e.checkUncalled(ctx, cause); err != nil {
		return problem.WithHint(fmt.Errorf("extender %s stays: %w", e.name(), err), fmt.Sprintf(
			"when its schedulers are stable, deploy the extender again, or remove it from all of them with `%s`",
			e.plan.Command("uninstall")))
	}
	return goBack(ctx, e.Deps, e.plan, e.previous, e.deployed, e.x.RunOptions)
}

// checkUncalled returns an error that names the schedulers which may still call the extender. A
// scheduler that calls the extender's former revision as before does not count.
func (e *extenderRun) checkUncalled(ctx context.Context, cause error) error {
	calling, err := callers(ctx, e.Deps, e.namespace(), e.name())
	if err != nil {
		return fmt.Errorf("find the schedulers that call it: %w", err)
	}
	maps.DeleteFunc(calling, func(ref SchedulerRef, now v1alpha1.Extender) bool {
		before, called := e.wired[ref]
		return called && e.previous != nil && reflect.DeepEqual(before, now)
	})
	var names []string
	for _, ref := range sortedRefs(calling) {
		names = append(names, ref.String())
	}
	switch {
	case len(names) > 0:
		return fmt.Errorf("it is still called by %s", strings.Join(names, ", "))
	case errors.Is(cause, steps.ErrUndo):
		return errors.New("a scheduler that could not be restored may still call it")
	}
	return nil
}

// unchanged reports whether goBack has nothing to do.
func unchanged(previous *apply.Revision, deployed *deploy.Outcome, how deploy.RunOptions) bool {
	return how.NoRollback || previous != nil && previous.Number == deployed.Revision
}

// goBack deploys the previous revision again, or removes the plan's objects if there is no previous
// revision.
func goBack(ctx context.Context, d deploy.Deps, plan *deploy.Plan, previous *apply.Revision, deployed *deploy.Outcome,
	how deploy.RunOptions) error {
	if unchanged(previous, deployed, how) {
		return nil
	}
	if previous == nil {
		_, err := deploy.Uninstall(ctx, d, plan.Namespace, plan.Name)
		return err
	}
	return redeploy(ctx, d, previous, deployed, how)
}

// redeploy deploys a former revision again, which undoes the run with the outcome deployed.
func redeploy(ctx context.Context, d deploy.Deps, revision *apply.Revision, deployed *deploy.Outcome,
	how deploy.RunOptions) error {
	plan, err := deploy.PlanOf(revision)
	if err != nil {
		return err
	}
	plan.Undoes(deployed)
	how.Verify = nil
	_, err = deploy.Deploy(ctx, d, plan, how)
	return err
}

// unwire deploys the changed schedulers' former revisions, all at once: a scheduler that becomes
// stable slowly does not delay the others, and each has the whole timeout. A former revision that
// does not become stable is kept, since the revision that it replaces calls an extender that does
// not work.
func (e *extenderRun) unwire(ctx context.Context, _ error) error {
	if e.x.NoRollback {
		return nil
	}
	quiet, how := e.Deps, e.x.RunOptions
	quiet.OnStep, how.NoRollback = nil, true
	failed := make([]error, len(e.changed))
	var all sync.WaitGroup
	for i, c := range e.changed {
		all.Go(func() {
			failed[i] = e.OnStep.Do("restore scheduler "+c.before.Namespace+"/"+c.before.Name, func() error {
				return redeploy(ctx, quiet, c.before, c.deployed, how)
			})
		})
	}
	all.Wait()
	return errors.Join(failed...)
}
