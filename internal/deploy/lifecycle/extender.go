package lifecycle

import (
	"context"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/extenders"
)

// PrepareExtender returns the deployment for an extender and its wiring into schedulers. branch is
// the release if no cluster is to be asked.
func PrepareExtender(
	ctx context.Context, s *session.Session, o extenders.Options, callers []extenders.SchedulerRef, branch string,
) (d deploy.Deps, x extenders.Deployment, err error) {
	x = extenders.Deployment{Options: o, For: callers}
	if branch != "" {
		if x.Release, err = pack.ResolveBranch(ctx, s, branch); err == nil && (len(callers) > 0 || o.Sidecar) {
			err = problem.Invalidf("leave --branch out",
				"wiring extender %s into a scheduler requires a cluster", o.Name)
		}
		return deploy.Deps{Warn: s.Warn, Note: s.Note}, x, err
	}
	if o.Sidecar && len(callers) == 0 {
		return d, x, problem.Invalidf("name the scheduler with --for",
			"extender %s as a sidecar requires a scheduler", o.Name)
	}
	if d, err = deploy.Connect(s); err != nil {
		return d, x, err
	}
	if err = locateExtender(ctx, s, &x.Options); err != nil {
		return d, x, err
	}
	x.Release, err = inspect.ServerRelease(d.Config)
	return d, x, err
}

// PlanExtender returns the plans for an extender and the schedulers that call it. branch is the
// release if no cluster is to be asked.
func PlanExtender(
	ctx context.Context, s *session.Session, o extenders.Options, callers []extenders.SchedulerRef, branch string,
) ([]*deploy.Plan, error) {
	d, x, err := PrepareExtender(ctx, s, o, callers, branch)
	if err != nil {
		return nil, err
	}
	plans, _, err := extenders.Plan(ctx, d, x)
	for _, plan := range plans {
		d.Report(plan)
	}
	return plans, err
}

// RestartExtender rolls out new pods for an extender.
func RestartExtender(ctx context.Context, s *session.Session, o extenders.RestartOptions) (*extenders.Outcome, error) {
	d, err := deploy.Connect(s)
	if err != nil {
		return nil, err
	}
	o.Now = time.Now()
	return extenders.Restart(ctx, d, o)
}
