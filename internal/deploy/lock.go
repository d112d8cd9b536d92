package deploy

import (
	"context"
	"errors"
	"fmt"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/steps"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
)

// lock is one run's lock.
type lock struct{ unlock func(context.Context) error }

// take waits for the lock until ctx ends, and holds it until release, also when ctx ends then: the
// undo needs it too. The context that it returns ends when the lock is lost.
func (l *lock) take(ctx context.Context, d Deps, namespace, name string) (context.Context, error) {
	hold, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	held, unlock, err := d.Cluster.Lock(hold, namespace, name, d.Holder)
	stop()
	if err != nil {
		cancel()
		var locked *apply.LockedError
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.As(err, &locked):
			return nil, fmt.Errorf("another run is in progress: %w", err)
		default:
			return nil, err
		}
	}
	l.unlock = func(ctx context.Context) error {
		defer cancel()
		return unlock(ctx)
	}
	return held, nil
}

func (l *lock) release(ctx context.Context) error {
	if l.unlock == nil {
		return nil
	}
	return l.unlock(ctx)
}

// withChanges adds a run's changes to its error if it lost its lock.
func withChanges(err error, changes apply.ChangeSet) error {
	if !errors.Is(err, steps.ErrStopped) || !changes.Changed() {
		return err
	}
	return problem.WithHint(err, "changed before, and left as it is: "+changes.Summary())
}
