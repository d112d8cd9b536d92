package install

import (
	"errors"
	"fmt"

	"github.com/pmk-sched/pmk-sched/internal/problem"
	"github.com/pmk-sched/pmk-sched/internal/steps"
)

// explain says in what state a failed deployment left the cluster.
func (d *deployment) explain(err error) error {
	err = fmt.Errorf("deploy %s: %w", d.plan.Name, err)
	touched, uninstall := d.outcome.Changes.Changed(), d.plan.Command("uninstall")
	switch {
	case !touched:
		return err
	case d.stable:
		return problem.WithHint(err, "the scheduler itself is deployed and stable; deploy again to finish")
	case d.again():
		return problem.WithHint(err, fmt.Sprintf("these are the objects of revision %d, which ran before; deploy again when the cause is gone", d.current.Number))
	case d.o.NoRollback, d.lost:
		return problem.WithHint(err, fmt.Sprintf("what was reached was left as it is; deploy again, or remove it with `%s`", uninstall))
	case errors.Is(err, steps.ErrUndo):
		return problem.WithHint(err, fmt.Sprintf("what was before could not be brought back; deploy again, or remove it with `%s`", uninstall))
	case d.previous != nil:
		return problem.WithHint(err, fmt.Sprintf("revision %d, which ran before, is back; --no-rollback keeps a failed deployment to look at", d.previous.Number))
	default:
		return problem.WithHint(err, fmt.Sprintf("everything that was made is removed again, but for the record of this attempt, which `%s` removes; "+
			"--no-rollback keeps a failed deployment to look at", uninstall))
	}
}
