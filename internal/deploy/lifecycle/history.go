package lifecycle

import (
	"context"
	"slices"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/extenders"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
)

// History returns the revisions of a scheduler or extender, oldest first. Not found is an error
// that names the namespace where it is.
func History(ctx context.Context, s *session.Session, sp *spec.Spec) ([]deploy.HistoryEntry, error) {
	d, err := deploy.Connect(s)
	if err != nil {
		return nil, err
	}
	revisions, err := allRevisions(ctx, d, sp)
	if err != nil {
		return nil, err
	}
	return deploy.History(ctx, revisions, d.Cluster.ReadRevision)
}

// allRevisions returns the revisions of a scheduler or extender, which has at least one.
func allRevisions(ctx context.Context, d deploy.Deps, sp *spec.Spec) ([]apply.RevisionInfo, error) {
	revisions, err := d.Cluster.Revisions(ctx, sp.Namespace, sp.Name)
	if err == nil && len(revisions) == 0 {
		err = notDeployed(ctx, d, sp)
	}
	return revisions, err
}

// notDeployed returns the error for a name without revisions in its namespace.
func notDeployed(ctx context.Context, d deploy.Deps, sp *spec.Spec) error {
	owned, err := d.Cluster.Owned(ctx, sp.Name, sp.Namespace)
	if err != nil {
		return err
	}
	if in := deploy.NamespacesOf(owned); len(in) > 0 && !slices.Contains(in, sp.Namespace) {
		return problem.Invalidf("use -n "+in[0], "%s is in namespace %s, not in %s", sp.Name, in[0], sp.Namespace)
	}
	return problem.Invalidf(
		"`pmk-sched status` lists those that are deployed; Helm has the history of what Helm installed",
		"%s has no revisions in namespace %s", sp.Name, sp.Namespace)
}

// RollBack deploys a scheduler's earlier revision again. to is its number, or 0 for the last
// deployed revision that differs from the current revision.
func RollBack(
	ctx context.Context, s *session.Session, sp *spec.Spec, to int, how deploy.RunOptions,
) (*deploy.Plan, *deploy.Outcome, error) {
	d, info, err := inspectAgain(ctx, s, sp)
	if err != nil {
		return nil, nil, err
	}
	return extenders.RollBack(ctx, d, info, rollbackTo(sp, to), how)
}

// DiffRevision returns the changes that RollBack would make, with the differences.
func DiffRevision(ctx context.Context, s *session.Session, sp *spec.Spec, to int) (apply.ChangeSet, error) {
	d, info, err := inspectAgain(ctx, s, sp)
	if err != nil {
		return nil, err
	}
	plan, err := extenders.PlanRollback(ctx, d, info, rollbackTo(sp, to))
	if err != nil {
		return nil, err
	}
	d.Report(plan)
	return deploy.Diff(ctx, d, plan)
}

func rollbackTo(sp *spec.Spec, to int) deploy.RollbackOptions {
	return deploy.RollbackOptions{Name: sp.Name, Namespace: sp.Namespace, To: to, Now: time.Now()}
}

// inspectAgain connects, and inspects the cluster for a deployed scheduler.
func inspectAgain(ctx context.Context, s *session.Session, sp *spec.Spec) (deploy.Deps, *inspect.Info, error) {
	d, err := deploy.Connect(s)
	if err != nil {
		return d, nil, err
	}
	info, err := inspectFor(ctx, s, d, sp.Name, sp.Namespace)
	return d, info, err
}
