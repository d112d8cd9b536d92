//go:build linux && (cases || releases)

package simulate

import (
	"context"

	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
)

// whenScheduled calls a function when the pods are scheduled.
type whenScheduled struct {
	simulate.Unobserved
	do func(ctx context.Context, cfg *rest.Config) error
}

func (o whenScheduled) Scheduled(ctx context.Context, r *simulate.Run) error {
	return o.do(ctx, r.Config())
}
