package extenders

import (
	"context"

	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
)

// Proof returns an error if the caller does not reach the extender, whose pods are in the namespace.
type Proof func(ctx context.Context, caller SchedulerRef, w manifest.Wiring, namespace string) error

// prove proves that every scheduler that was wired reaches the extender.
func (e *extenderRun) prove(ctx context.Context) error {
	for _, target := range e.targets() {
		if e.x.Prove == nil {
			break
		}
		if err := e.x.Prove(ctx, target, e.wiringIn(target.Namespace), e.namespace()); err != nil {
			return err
		}
	}
	return nil
}
