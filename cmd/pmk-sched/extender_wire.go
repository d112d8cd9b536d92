package main

import (
	"context"
	"slices"

	"github.com/urfave/cli/v2"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/extenders"
	"github.com/pmk-sched/pmk-sched/internal/install"
	"github.com/pmk-sched/pmk-sched/internal/manifest"
	"github.com/pmk-sched/pmk-sched/versions"
)

// extendersOf are the extenders of the file that are deployed with its scheduler.
func extendersOf(c *cli.Context) ([]extenders.Options, error) {
	f, err := readCustomScheduler(c.String("file"))
	if err != nil {
		return nil, err
	}
	var list []extenders.Options
	for _, e := range f.deployedExtenders() {
		o, err := e.options(f, namespaceOf(c, f))
		if err != nil {
			return nil, err
		}
		list = append(list, o)
	}
	return list, nil
}

// withScheduler is how an extender of a file is deployed before its scheduler.
func withScheduler(o extenders.Options, release versions.Release, s install.Options) extenders.Deployment {
	return extenders.Deployment{
		Options: o, Release: release, Except: extenders.SchedulerRef{Namespace: s.Namespace, Name: s.Name},
		Then: func(context.Context, manifest.Wiring) error { return nil },
	}
}

// addExtenders plans the extenders of the file, and adds to what the scheduler is rendered with how it calls them. Those that were wired in by
// themselves stay. Without a cluster cfg is nil.
func addExtenders(c *cli.Context, u *ui, cfg *rest.Config, release versions.Release, o *install.Options) ([]*install.Plan, error) {
	if o.Wirings != nil {
		return nil, nil
	}
	list, err := extendersOf(c)
	if err != nil {
		return nil, err
	}
	var deps install.Deps
	if cfg != nil {
		if deps, err = newDeps(c, u, cfg); err != nil {
			return nil, err
		}
	}
	var plans []*install.Plan
	for _, e := range list {
		made, wiring, err := extenders.Plan(c.Context, deps, withScheduler(e, release, *o))
		if err != nil {
			return nil, err
		}
		plans, o.Wirings = append(plans, made...), append(o.Wirings, wiring)
	}
	return plans, keepAlone(c, deps, o)
}

// keepAlone adds the extenders that `extender deploy` wired into the scheduler.
func keepAlone(c *cli.Context, deps install.Deps, o *install.Options) error {
	if deps.Ledger == nil {
		return nil
	}
	before, err := extenders.Wired(c.Context, deps, o.Namespace, o.Name)
	for _, w := range before {
		if w.Alone && !calls(o.Wirings, w) {
			o.Wirings = append(o.Wirings, w)
		}
	}
	return err
}

// calls says whether an extender is among others, by its name.
func calls(wirings []manifest.Wiring, w manifest.Wiring) bool {
	return slices.ContainsFunc(wirings, func(other manifest.Wiring) bool { return other.Extender.Name == w.Extender.Name })
}

// deployAll deploys the extenders of the file, one after the other, and then the scheduler that calls them; what fails takes everything back.
func deployAll(c *cli.Context, u *ui, cfg *rest.Config, deps install.Deps, o install.Options, list []extenders.Options, how install.DeployOptions) (*install.Plan, *install.Outcome, error) {
	release, err := releaseOf(cfg)
	if err != nil {
		return nil, nil, err
	}
	var plan *install.Plan
	var outcome *install.Outcome
	var next func(ctx context.Context, rest []extenders.Options, wirings []manifest.Wiring) error
	next = func(ctx context.Context, rest []extenders.Options, wirings []manifest.Wiring) error {
		if len(rest) > 0 {
			x := withScheduler(rest[0], release, o)
			x.DeployOptions = how
			x.Then = func(ctx context.Context, w manifest.Wiring) error {
				return next(ctx, rest[1:], append(slices.Clone(wirings), w))
			}
			_, err := extenders.Deploy(ctx, deps, x)
			return err
		}
		o.Wirings = append([]manifest.Wiring{}, wirings...)
		err := keepAlone(c, deps, &o)
		if err != nil {
			return err
		}
		if plan, err = makePlan(c, u, cfg, o); err != nil {
			return err
		}
		outcome, err = install.Deploy(ctx, deps, plan, how)
		return err
	}
	before, err := extenders.Wired(c.Context, deps, o.Namespace, o.Name)
	if err != nil {
		return nil, nil, err
	}
	if err := next(c.Context, list, nil); err != nil {
		return nil, nil, err
	}
	for _, w := range before {
		if w.Sidecar == nil && !calls(o.Wirings, w) {
			u.warn("scheduler " + o.Name + " does not call extender " + w.Extender.Name + " any more; if nobody else does, remove it with `pmk-sched extender uninstall --name " + w.Extender.Name + "`")
		}
	}
	return plan, outcome, nil
}
