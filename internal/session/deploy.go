package session

import (
	"context"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/extenders"
	"github.com/pmk-sched/pmk-sched/internal/deploy/preflight"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
)

// request is a scheduler to install, with the extenders that are deployed with it and the plugins that are in its image.
type request struct {
	extenders.SchedulerDeployment
	plugins []pack.Plugin
}

// newRequest resolves the branch of the spec and returns the deployment that the spec describes.
func (s *Session) newRequest(ctx context.Context, sp *spec.Spec) (*request, error) {
	if err := s.chooseBranch(ctx, &sp.Branch); err != nil {
		return nil, err
	}
	r := &request{}
	var err error
	if r.Options, err = sp.Scheduler(); err != nil {
		return nil, err
	}
	if r.Extenders, err = sp.Extenders(); err != nil {
		return nil, err
	}
	r.plugins, err = sp.Plugins()
	return r, err
}

// DryRun checks everything and returns the changes that Deploy would make.
func (s *Session) DryRun(ctx context.Context, sp *spec.Spec) (apply.ChangeSet, error) {
	return s.preview(ctx, sp, deploy.DryRun)
}

// Diff returns the changes that Deploy would make, with the differences.
func (s *Session) Diff(ctx context.Context, sp *spec.Spec) (apply.ChangeSet, error) {
	return s.preview(ctx, sp, deploy.Diff)
}

func (s *Session) preview(ctx context.Context, sp *spec.Spec, preview func(context.Context, deploy.Deps, *deploy.Plan) (apply.ChangeSet, error)) (apply.ChangeSet, error) {
	_, deps, plan, err := s.connectAndPlan(ctx, sp)
	if err != nil {
		return nil, err
	}
	return preview(ctx, deps, plan)
}

// Check checks whether the cluster accepts the scheduler, and which known problems of its release its configuration meets. The outcomes are
// nil if the checks could not be made.
func (s *Session) Check(ctx context.Context, sp *spec.Spec) ([]preflight.Outcome, error) {
	cfg, _, plan, err := s.connectAndPlan(ctx, sp)
	if err != nil {
		return nil, err
	}
	outcomes, failed := s.check(ctx, cfg, plan)
	if outcomes == nil {
		return nil, failed
	}
	known, err := knownProblems(plan)
	if err != nil {
		return nil, err
	}
	return append(outcomes, known...), failed
}

// Deploy deploys the extenders of the spec, one after the other, and then the scheduler that calls them. A failure undoes
// all of it.
func (s *Session) Deploy(ctx context.Context, sp *spec.Spec, how deploy.RunOptions) (*deploy.Plan, *deploy.Outcome, error) {
	return s.deploy(ctx, sp, how, "", 0)
}

// deploy is Deploy with an origin to record, and the revision that must be the current one. If
// replaces is 0, the current revision is not compared.
func (s *Session) deploy(ctx context.Context, sp *spec.Spec, how deploy.RunOptions, origin string, replaces int) (*deploy.Plan, *deploy.Outcome, error) {
	r, err := s.newRequest(ctx, sp)
	if err != nil {
		return nil, nil, err
	}
	r.Options.Origin, r.Options.Replaces = origin, replaces
	cfg, deps, err := s.connectDeps()
	if err != nil {
		return nil, nil, err
	}
	r.RunOptions, r.Prove = how, s.proveExtender(cfg)
	if err := s.prepare(ctx, cfg, r); err != nil {
		return nil, nil, err
	}
	return extenders.DeployScheduler(ctx, deps, r.SchedulerDeployment)
}

// Uninstall removes a scheduler and the extenders that were deployed with it. The timeout is for all of it.
func (s *Session) Uninstall(ctx context.Context, sp *spec.Spec, timeout time.Duration) (apply.ChangeSet, error) {
	_, deps, err := s.connectDeps()
	if err != nil {
		return nil, err
	}
	list, err := sp.Extenders()
	if err != nil {
		return nil, err
	}
	return uninstall(ctx, deps, sp.Namespace, sp.Name, list, timeout)
}

func uninstall(ctx context.Context, deps deploy.Deps, namespace, name string, list []extenders.Options, timeout time.Duration) (apply.ChangeSet, error) {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	changes, err := deploy.Uninstall(limited, deps, namespace, name)
	for _, o := range list {
		if err != nil {
			break
		}
		var removed apply.ChangeSet
		removed, err = extenders.Uninstall(limited, deps, extenders.UninstallOptions{Name: o.Call.Name, Namespace: o.Namespace})
		changes = append(changes, removed...)
	}
	return changes, err
}
