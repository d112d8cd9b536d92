package replace

import (
	"context"

	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/cluster/sysdump"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
)

// Sysdump is [lifecycle.Sysdump] with the status of second and default schedulers.
func Sysdump(
	ctx context.Context, s *session.Session, sp *spec.Spec, file, version string,
) (*sysdump.Summary, error) {
	return lifecycle.Sysdump(ctx, s, sp, file, version, func(ctx context.Context) (any, error) {
		return ReadStatus(ctx, s, "", "")
	})
}
