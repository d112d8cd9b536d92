package extenders

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
)

// RollBack deploys a scheduler's earlier revision again, in the same way as a new one: checked,
// locked, and undone if it is not stable.
func RollBack(ctx context.Context, d deploy.Deps, info *inspect.Info, o deploy.RollbackOptions,
	how deploy.RunOptions) (*deploy.Plan, *deploy.Outcome, error) {
	plan, err := PlanRollback(ctx, d, info, o)
	if err != nil {
		return nil, nil, err
	}
	d.Report(plan)
	outcome, err := deploy.Deploy(ctx, d, plan, how)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", plan.Origin, err)
	}
	return plan, outcome, nil
}

// PlanRollback returns the plan that RollBack runs. The scheduler calls the revision's extenders;
// an extender that was deployed again since is called at its current address. PlanRollback refuses
// a revision that calls an extender which is not deployed any more.
func PlanRollback(ctx context.Context, d deploy.Deps, info *inspect.Info,
	o deploy.RollbackOptions) (*deploy.Plan, error) {
	revisions, err := d.Cluster.Revisions(ctx, o.Namespace, o.Name)
	if err != nil {
		return nil, err
	}
	plan, target, err := deploy.PlanRollback(ctx, info, revisions, d.Cluster.ReadRevision, o)
	if err != nil {
		return nil, err
	}
	stale, current, err := staleExtenders(ctx, d, target)
	if err != nil {
		return nil, fmt.Errorf("roll back %s to revision %d: %w", o.Name, target.Number, err)
	}
	if plan.AllowExtenders(current); len(stale) == 0 {
		return plan, nil
	}
	if err := plan.SetExtenders(stale); err != nil {
		return nil, fmt.Errorf("roll back %s to revision %d: %w", o.Name, target.Number, err)
	}
	for _, e := range stale {
		plan.Warnings = append(plan.Warnings,
			fmt.Sprintf("extender %s was deployed again since revision %d: its current address and certificates are used",
				e.Name, target.Number))
	}
	return plan, nil
}

// staleExtenders returns the revision's extenders that have another address or certificates now,
// and the others, as they are deployed now. A sidecar is part of the revision.
func staleExtenders(ctx context.Context, d deploy.Deps,
	revision *apply.Revision) (stale, current []v1alpha1.Extender, err error) {
	called, err := deploy.ExtendersOf(revision)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range called {
		if e.Sidecar {
			continue
		}
		fresh, err := currentExtender(ctx, d, e, revision)
		if err != nil {
			return nil, nil, err
		}
		if equality.Semantic.DeepEqual(e, fresh) {
			current = append(current, fresh)
		} else {
			stale = append(stale, fresh)
		}
	}
	return stale, current, nil
}

// currentExtender returns the entry of an extender with a Service for a revision's scheduler, as
// the extender is deployed now.
func currentExtender(ctx context.Context, d deploy.Deps, e v1alpha1.Extender,
	revision *apply.Revision) (v1alpha1.Extender, error) {
	deployments, err := d.Cluster.Deployments(ctx, revision.Namespace)
	if err != nil {
		return e, err
	}
	for _, o := range deployments {
		labels := o.GetLabels()
		if labels[ownership.LabelName] != ownership.Extender || labels[ownership.LabelInstance] != e.Name ||
			e.Deployed.ServerName != manifest.ExtenderHost(e.Name, o.GetNamespace()) {
			continue
		}
		live, err := d.Cluster.Owned(ctx, e.Name, o.GetNamespace())
		if err != nil {
			return e, err
		}
		fresh := withService(e, o.GetNamespace(), liveCertificates(live, e.Name).CA.Cert, live)
		if fresh.Deployed.Added = e.Deployed.Added; revision.Namespace == o.GetNamespace() {
			fresh = withClientCertificate(fresh)
		}
		return fresh, nil
	}
	return e, problem.Invalidf("deploy it first: `pmk-sched extender deploy --name "+e.Name+"`",
		"it calls extender %s, which is not deployed any more", e.Name)
}
