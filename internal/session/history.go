package session

import (
	"context"
	"slices"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/extenders"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
)

// History returns the revisions of a scheduler or extender, oldest first. Not found is an error that names the namespace where it is.
func (s *Session) History(ctx context.Context, sp *spec.Spec) ([]deploy.HistoryEntry, error) {
	_, deps, err := s.connectDeps()
	if err != nil {
		return nil, err
	}
	revisions, err := deps.Ledger.AllRevisions(ctx, sp.Namespace, sp.Name)
	if err != nil {
		return nil, err
	}
	if len(revisions) == 0 {
		return nil, notDeployed(ctx, deps, sp)
	}
	return deploy.History(revisions), nil
}

// notDeployed returns the error for a name without revisions in its namespace.
func notDeployed(ctx context.Context, deps deploy.Deps, sp *spec.Spec) error {
	owned, err := deps.Applier.Owned(ctx, sp.Name, sp.Namespace)
	if err != nil {
		return err
	}
	if in := deploy.NamespacesOf(owned); len(in) > 0 && !slices.Contains(in, sp.Namespace) {
		return problem.Invalidf("use -n "+in[0], "%s is in namespace %s, not in %s", sp.Name, in[0], sp.Namespace)
	}
	return problem.Invalidf("`pmk-sched status` lists those that are deployed; Helm has the history of what Helm installed",
		"%s has no revisions in namespace %s", sp.Name, sp.Namespace)
}

// RollBack deploys an earlier revision of a scheduler again. to is its number, or 0 for the last
// deployed revision that differs from the current revision.
func (s *Session) RollBack(ctx context.Context, sp *spec.Spec, to int, how deploy.RunOptions) (*deploy.Plan, *deploy.Outcome, error) {
	deps, info, err := s.inspectFor(ctx, sp)
	if err != nil {
		return nil, nil, err
	}
	return extenders.RollBack(ctx, deps, info, rollbackTo(sp, to), how)
}

// DiffRevision returns the changes that RollBack would make, with the differences.
func (s *Session) DiffRevision(ctx context.Context, sp *spec.Spec, to int) (apply.ChangeSet, error) {
	deps, info, err := s.inspectFor(ctx, sp)
	if err != nil {
		return nil, err
	}
	plan, err := extenders.PlanRollback(ctx, deps, info, rollbackTo(sp, to))
	if err != nil {
		return nil, err
	}
	s.report(plan)
	return deploy.Diff(ctx, deps, plan)
}

func rollbackTo(sp *spec.Spec, to int) deploy.RollbackOptions {
	return deploy.RollbackOptions{Name: sp.Name, Namespace: sp.Namespace, To: to, Now: time.Now()}
}

// inspectFor connects, and inspects the cluster for the scheduler of the spec.
func (s *Session) inspectFor(ctx context.Context, sp *spec.Spec) (deploy.Deps, *inspect.Info, error) {
	cfg, deps, err := s.connectDeps()
	if err != nil {
		return deps, nil, err
	}
	info, err := s.Session.Inspect(ctx, cfg, sp.Name, sp.Namespace)
	if err != nil {
		return deps, nil, err
	}
	for _, warning := range info.Warnings {
		s.Warn(warning)
	}
	return deps, info, nil
}
