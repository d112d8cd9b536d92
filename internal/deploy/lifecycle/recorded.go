package lifecycle

import (
	"context"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
)

// Confirm asks the user before this machine runs recorded code, or writes an image under a recorded
// name. It returns an error unless the user agrees. If it is nil, both are refused.
type Confirm func(context.Context, *pack.Unconfirmed) error

// Settle sets a field in a request to nil if the user confirms it.
func (ask Confirm) Settle(ctx context.Context, field **pack.Unconfirmed) error {
	switch {
	case *field == nil:
		return nil
	case ask == nil:
		return (*field).Check()
	}
	if err := ask(ctx, *field); err != nil {
		return err
	}
	*field = nil
	return nil
}

// addRecipe adds to a record how this machine built the image, if it did.
func addRecipe(ctx context.Context, s *session.Session, before *deploy.Installed) error {
	contents, err := pack.ReadPlugins(ctx, s, before.Image, before.Release, nil)
	if err == nil {
		before.Built = contents.Recipe
	}
	return err
}

// DeployedScheduler returns the scheduler that is deployed with the spec's name, to run it on this
// machine at its release, with the extenders that were added to it. confirm asks for its code.
func DeployedScheduler(
	ctx context.Context, s *session.Session, sp *spec.Spec, confirm Confirm,
) (r pack.Scheduler, err error) {
	d, err := deploy.Connect(s)
	if err != nil {
		return r, err
	}
	u, err := newUpgrade(ctx, s, d, UpgradeOptions{Spec: sp})
	if err != nil {
		return r, err
	}
	release := u.installed.Release
	if err := addRecipe(ctx, s, u.installed); err != nil {
		return r, err
	}
	again, err := sp.Again(*u.installed, release.String(), release.Rules().Policy)
	if err != nil {
		return r, err
	}
	if r, err = again.Simulation(nil, nil); err != nil {
		return r, err
	}
	r.Deployed = append(r.Deployed, u.installed.Added...)
	return r, confirm.Settle(ctx, &r.Unconfirmed)
}
