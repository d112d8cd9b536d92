package apply

import (
	"errors"
	"fmt"
	"time"

	ssaerrors "github.com/fluxcd/pkg/ssa/errors"

	"github.com/pmk-sched/pmk-sched/internal/kubeapi"
)

// ForeignError says that an object of a name we need is there and is not ours. Nothing was changed.
type ForeignError struct {
	Object string // Kind/namespace/name
	Owner  string // who made it, as far as its labels or field managers tell; may be empty
}

// Error names the object and its owner.
func (e *ForeignError) Error() string {
	if e.Owner == "" {
		return fmt.Sprintf("%s is there already and was not made by pmk-sched for this scheduler", e.Object)
	}
	return fmt.Sprintf("%s is there already and was not made by pmk-sched for this scheduler, but by %s", e.Object, e.Owner)
}

// Hint offers the two ways out.
func (e *ForeignError) Hint() string {
	return "choose another --name, or delete that object first if it is not needed"
}

// ImmutableError says that an object differs from what is wanted in a field that cannot be changed, and that it is of a kind that is
// not deleted and created anew behind a person's back.
type ImmutableError struct {
	Object string
	Err    error
}

// Error names the object; the API server's own words name the field.
func (e *ImmutableError) Error() string {
	return fmt.Sprintf("%s differs in a field that cannot be changed: %v", e.Object, e.Err)
}

// Unwrap returns the API server's answer.
func (e *ImmutableError) Unwrap() error { return e.Err }

// Hint says how to get there.
func (e *ImmutableError) Hint() string {
	return "uninstall this scheduler and deploy it again, or deploy under another --name"
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

// TooLargeError says that a revision does not fit into a Secret.
type TooLargeError struct {
	Name        string
	Size, Limit int // bytes, compressed
}

// Error gives both sizes.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("objects of scheduler %s are too large to be kept for rollback: %d bytes compressed, the limit is %d", e.Name, e.Size, e.Limit)
}

// Hint names what is usually large.
func (e *TooLargeError) Hint() string { return "make the scheduler configuration smaller" }

// Invalid says that what the person gave is at fault.
func (e *TooLargeError) Invalid() bool { return true }

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
