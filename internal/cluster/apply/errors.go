package apply

import (
	"errors"
	"fmt"
	"time"

	ssaerrors "github.com/fluxcd/pkg/ssa/errors"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
)

// foreignError is returned when an object with this name exists and is not managed by pmk-sched for
// this scheduler. Nothing was changed.
func foreignError(object, owner string) error {
	text := object + " already exists and is not managed by pmk-sched for this scheduler"
	if owner != "" {
		text += ", but by " + owner
	}
	return problem.Errorf("choose another --name, or delete that object if it is not needed", "%s", text)
}

// LockedError is returned when another run holds a scheduler's lock.
type LockedError struct {
	Name   string // of the scheduler
	Lease  string // namespace/name
	Holder string
	Since  time.Time
}

// Error names the lock's holder and the time since when it holds it.
func (e *LockedError) Error() string {
	return fmt.Sprintf("scheduler %s is being changed by %s since %s", e.Name, e.Holder,
		e.Since.UTC().Format(time.RFC3339))
}

// Hint returns an instruction for the user.
func (e *LockedError) Hint() string {
	return "wait until it has ended; if it was killed, its lock (Lease " + e.Lease +
		") expires 15 s after its last renewal"
}

// LostLockError reports that a lock is not held any more: another run has taken it over because
// this one could not renew it, or may do so.
type LostLockError struct {
	Name   string
	Holder string // present holder; may be empty
	Err    error  // why the lock could not be renewed, if no other run holds it
}

// Error names the lock's present holder.
func (e *LostLockError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("the lock of scheduler %s expired during the change: %v", e.Name, e.Err)
	}
	if e.Holder == "" {
		return fmt.Sprintf("the lock of scheduler %s was deleted during the change", e.Name)
	}
	return fmt.Sprintf("the lock of scheduler %s was taken over by %s during the change", e.Name, e.Holder)
}

// Unwrap returns why the lock could not be renewed; it may be nil.
func (e *LostLockError) Unwrap() error { return e.Err }

// Hint returns an instruction for the user.
func (e *LostLockError) Hint() string {
	return "run the same command again when no other run changes scheduler " + e.Name +
		"; `pmk-sched status` shows its state"
}

// unwrapDryRun removes flux's wrapping from an error about object.
func unwrapDryRun(object string, err error) error {
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
		return fmt.Errorf("the API server rejects %s: %w", object, dryRun.Unwrap())
	default:
		return err
	}
}
