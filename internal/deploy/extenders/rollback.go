package extenders

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
	stale, current, err := staleWirings(ctx, d, target)
	if err != nil {
		return nil, fmt.Errorf("roll back %s to revision %d: %w", o.Name, target.Number, err)
	}
	if plan.AllowExtenders(current); len(stale) == 0 {
		return plan, nil
	}
	rewired, err := deploy.Rewire(target, stale, nil)
	if err != nil {
		return nil, fmt.Errorf("roll back %s to revision %d: %w", o.Name, target.Number, err)
	}
	rewired.Origin, rewired.Replaces, rewired.TakenPorts = plan.Origin, plan.Replaces, plan.TakenPorts
	rewired.AllowExtenders(current)
	rewired.Warnings = slices.Concat(plan.Warnings, rewired.Warnings)
	for _, w := range stale {
		rewired.Warnings = append(rewired.Warnings,
			fmt.Sprintf("extender %s was deployed again since revision %d: its current address and certificates are used",
				w.Extender.Name, target.Number))
	}
	return rewired, nil
}

// staleWirings returns the current wirings of the revision's extenders that have another address or
// certificates now, and the wirings of the others. A sidecar is part of the revision.
func staleWirings(ctx context.Context, d deploy.Deps, revision *apply.Revision) (stale, current []manifest.Wiring,
	err error) {
	wirings, err := deploy.WiringsOf(revision)
	if err != nil {
		return nil, nil, err
	}
	for _, w := range wirings {
		if w.Sidecar != nil {
			continue
		}
		fresh, err := currentWiring(ctx, d, w, revision)
		if err != nil {
			return nil, nil, err
		}
		if equality.Semantic.DeepEqual(w, fresh) {
			current = append(current, fresh)
		} else {
			stale = append(stale, fresh)
		}
	}
	return stale, current, nil
}

// currentWiring returns the wiring of an extender with a Service for a revision's scheduler, as the
// extender is deployed now.
func currentWiring(ctx context.Context, d deploy.Deps, w manifest.Wiring,
	revision *apply.Revision) (manifest.Wiring, error) {
	name := w.Extender.Name
	deployments, err := d.Cluster.Deployments(ctx, revision.Namespace)
	if err != nil {
		return w, err
	}
	for _, o := range deployments {
		labels := o.GetLabels()
		if labels[ownership.LabelName] != ownership.Extender || labels[ownership.LabelInstance] != name ||
			!calledIn(w, o.GetNamespace()) {
			continue
		}
		live, err := d.Cluster.Owned(ctx, name, o.GetNamespace())
		if err != nil {
			return w, err
		}
		return refreshed(w, live, o.GetNamespace(), revision.Namespace), nil
	}
	return w, problem.Invalidf("deploy it first: `pmk-sched extender deploy --name "+name+"`",
		"it calls extender %s, which is not deployed any more", name)
}

// calledIn reports whether the wiring is to the extender in a namespace.
func calledIn(w manifest.Wiring, namespace string) bool {
	return w.Extender.TLS != nil && w.Extender.TLS.ServerName == manifest.ExtenderHost(w.Extender.Name, namespace)
}

// refreshed returns the wiring with the address and the certificates in an extender's live objects.
func refreshed(w manifest.Wiring, live []*unstructured.Unstructured, extenderNamespace,
	schedulerNamespace string) manifest.Wiring {
	plan := &deploy.Plan{Name: w.Extender.Name, Namespace: extenderNamespace, Extender: &manifest.Extender{}}
	plan.Extender.Certificates.CA = liveCertificates(live, w.Extender.Name).CA.Cert
	fresh := serviceWiring(w.Extender, plan, live)
	fresh.Alone = w.Alone
	if schedulerNamespace == extenderNamespace {
		fresh = withClientCertificate(fresh)
	}
	return fresh
}
