package lifecycle

import (
	"context"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/versions"
)

// CheckUpgrades reports the upgrade for the spec's scheduler or, if it has no name, of all
// schedulers in namespace, or in all namespaces if it is empty. It changes nothing.
func CheckUpgrades(
	ctx context.Context, s *session.Session, o UpgradeOptions, namespace string,
) (*inspect.Info, []Upgrade, error) {
	d, err := deploy.Connect(s)
	if err != nil {
		return nil, nil, err
	}
	info, err := s.Inspect(ctx, d.Config, o.Spec.Name, o.Spec.Namespace)
	if err != nil {
		return nil, nil, err
	}
	list := []Upgrade{}
	if o.Spec.Name != "" {
		one, err := checkUpgrade(ctx, s, d, o)
		if err == nil {
			list = append(list, *one)
		}
		return info, list, err
	}
	for _, deployed := range info.Scheduler.Deployed {
		if namespace != "" && namespace != deployed.Namespace {
			continue
		}
		one := o
		one.Spec = o.Spec.Named(deployed.Name, deployed.Namespace)
		found, err := checkUpgrade(ctx, s, d, one)
		switch {
		case ctx.Err() != nil:
			return nil, nil, err
		case err != nil:
			found = unknownUpgrade(deployed, info.Release, err)
		}
		list = append(list, *found)
	}
	return info, list, nil
}

// checkUpgrade reports the upgrade for one scheduler. If it cannot be upgraded, the report has the
// reason.
func checkUpgrade(ctx context.Context, s *session.Session, d deploy.Deps, o UpgradeOptions) (*Upgrade, error) {
	u, err := newUpgrade(ctx, s, d, o)
	if err != nil {
		return nil, err
	}
	if !u.report.Due {
		return u.report, nil
	}
	if err = u.describeAgain(ctx); err == nil {
		err = u.plan(ctx)
	}
	switch {
	case ctx.Err() != nil:
		return nil, err
	case err != nil:
		u.report.Blocked, u.report.Needs = err.Error(), problem.Hints(err)
	}
	return u.report, nil
}

// unknownUpgrade reports a scheduler that cannot be upgraded because of err.
func unknownUpgrade(d inspect.DeployedScheduler, server versions.Release, err error) *Upgrade {
	u := &Upgrade{
		Name: d.Name, Namespace: d.Namespace, Release: d.Release, Image: d.Image, Target: server.String(),
		Due: d.Release != server.String(),
	}
	if u.Due {
		u.Blocked, u.Needs = err.Error(), problem.Hints(err)
	}
	return u
}
