package install

import (
	"errors"
	"fmt"
)

// explain says in what state a failed deployment left the cluster.
func (d *deployment) explain(err error) error {
	err = fmt.Errorf("deploy %s: %w", d.plan.Name, err)
	touched, uninstall := d.outcome.Changes.Changed(), d.plan.Command("uninstall")
	switch {
	case !touched:
		return err
	case d.steady:
		return &Error{Err: err, Try: "the scheduler itself is deployed and steady; deploy again to finish"}
	case d.again():
		return &Error{Err: err, Try: fmt.Sprintf("these are the objects of revision %d, which ran before; deploy again when the cause is gone", d.current.Number)}
	case d.o.NoRollback, d.lost:
		return &Error{Err: err, Try: fmt.Sprintf("what was reached was left as it is; deploy again, or remove it with `%s`", uninstall)}
	case errors.Is(err, errUndo):
		return &Error{Err: err, Try: fmt.Sprintf("what was before could not be brought back; deploy again, or remove it with `%s`", uninstall)}
	case d.previous != nil:
		return &Error{Err: err, Try: fmt.Sprintf("revision %d, which ran before, is back; --no-rollback keeps a failed deployment to look at", d.previous.Number)}
	default:
		return &Error{Err: err, Try: fmt.Sprintf("everything that was made is removed again, but for the record of this attempt, which `%s` removes; "+
			"--no-rollback keeps a failed deployment to look at", uninstall)}
	}
}
