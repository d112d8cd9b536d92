package install

import (
	"context"
	"errors"
	"fmt"

	"github.com/pmk-sched/pmk-sched/internal/apply"
)

// held is the lock of one run.
type held struct{ unlock func(context.Context) error }

// take waits for the lock until ctx ends, and holds it until release, also when ctx ends then: the undo needs it too.
func (h *held) take(ctx context.Context, d Deps, namespace, name string) error {
	hold, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	unlock, err := d.Locker.Lock(hold, namespace, name, d.Holder)
	stop()
	if err != nil {
		cancel()
		var locked *apply.LockedError
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &locked):
			return fmt.Errorf("another run is in progress: %w", err)
		default:
			return err
		}
	}
	h.unlock = func(ctx context.Context) error {
		defer cancel()
		return unlock(ctx)
	}
	return nil
}

func (h *held) release(ctx context.Context) error {
	if h.unlock == nil {
		return nil
	}
	return h.unlock(ctx)
}
