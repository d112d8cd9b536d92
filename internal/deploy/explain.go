package deploy

import (
	"errors"
	"fmt"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/steps"
)

// explain adds the cluster's state after a failed deployment.
func (d *deployRun) explain(err error) error {
	err = fmt.Errorf("deploy %s: %w", d.plan.Name, err)
	touched, uninstall := d.outcome.Changes.Changed(), d.plan.Command("uninstall")
	keep := "; --no-rollback keeps a failed deployment for inspection"
	if d.plan.Origin != "" { // a rollback, which has no such flag
		keep = ""
	}
	switch {
	case errors.Is(err, steps.ErrStopped) && !errors.Is(err, steps.ErrUndo):
		return withChanges(err, d.outcome.Changes)
	case !touched:
		return err
	case d.stable:
		return problem.WithHint(err, "the scheduler is deployed and stable; deploy again to finish")
	case d.again():
		return problem.WithHint(err,
			fmt.Sprintf("the cluster has the objects of revision %d, which ran before; fix the cause and deploy again",
				d.current.Number))
	case d.o.NoRollback, d.lost:
		return problem.WithHint(err,
			fmt.Sprintf("the failed deployment was not rolled back; deploy again, or remove it with `%s`", uninstall))
	case errors.Is(err, steps.ErrUndo):
		return problem.WithHint(err,
			fmt.Sprintf("the former state could not be restored; deploy again, or remove the scheduler with `%s`", uninstall))
	case d.previous != nil:
		return problem.WithHint(err, fmt.Sprintf("revision %d, which ran before, is restored%s", d.previous.Number, keep))
	default:
		return problem.WithHint(err,
			fmt.Sprintf("all created objects are removed except the revision of this attempt, which `%s` removes%s", uninstall,
				keep))
	}
}
