package apply

import (
	"errors"
	"fmt"
	"time"

	ssaerrors "github.com/fluxcd/pkg/ssa/errors"

	"github.com/pmk-sched/pmk-sched/internal/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/problem"
)

// foreignError refuses an object that is in the cluster under a name we need and was not made for this scheduler. Nothing was changed.
func foreignError(object, owner string) error {
	text := object + " is there already and was not made by pmk-sched for this scheduler"
	if owner != "" {
		text += ", but by " + owner
	}
	return problem.Errorf("choose another --name, or delete that object first if it is not needed", "%s", text)
}

// LockedError says that another run holds the lock of a scheduler.
type LockedError struct {
	Name   string // of the scheduler
	Lease  string // namespace/name
	Holder string
	Since  time.Time
}

// Error says who holds the lock, and since when.
func (e *LockedError) Error() string {
	return fmt.Sprintf("scheduler %s is being changed by %s since %s", e.Name, e.Holder, e.Since.UTC().Format(time.RFC3339))
}

// Hint says what to do.
func (e *LockedError) Hint() string {
	return "wait until it has ended; if it was killed, its lock (Lease " + e.Lease + ") is taken over 15 s after its last sign of life"
}

// LostLockError is returned by unlock: the lock was taken over by another run while this one could not renew it.
type LostLockError struct {
	Name   string
	Holder string // who holds it now; empty: nobody
}

// Error says who has the lock now.
func (e *LostLockError) Error() string {
	if e.Holder == "" {
		return fmt.Sprintf("the lock of scheduler %s was taken away while it was being changed", e.Name)
	}
	return fmt.Sprintf("the lock of scheduler %s was taken over by %s while it was being changed", e.Name, e.Holder)
}

// Hint says what to do.
func (e *LostLockError) Hint() string {
	return "run the same command again when the other has ended"
}

// plain takes flux's wrapping off an error of doing something to object, where ours says more.
func plain(object string, err error) error {
	if err == nil {
		return nil
	}
	var forbidden *kubeapi.ForbiddenError
	var unreachable *kubeapi.UnreachableError
	var dryRun *ssaerrors.DryRunErr
	switch {
	case errors.As(err, &forbidden):
		return forbidden
	case errors.As(err, &unreachable):
		return unreachable
	case errors.As(err, &dryRun):
		return fmt.Errorf("%s is not accepted by the API server: %w", object, dryRun.Unwrap())
	default:
		return err
	}
}
