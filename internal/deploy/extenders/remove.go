package extenders

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/base/steps"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
)

// UninstallScheduler removes a scheduler, and the extenders that its last revision records or that
// d.Owner deployed last, unless another scheduler calls them. Its revisions are removed after the
// extenders, so that it can be run again. A scheduler that was never deployed is no error.
func UninstallScheduler(ctx context.Context, d deploy.Deps, ref SchedulerRef) (apply.ChangeSet, error) {
	if manifest.ValidateName(ref.Name) != nil {
		return nil, nil //nolint:nilerr // it cannot have been deployed
	}
	var removed apply.ChangeSet
	changes, err := deploy.Uninstall(ctx, d, ref.Namespace, ref.Name, steps.Step{Name: "remove extenders",
		Do: func(ctx context.Context) error {
			names, err := deployedWith(ctx, d, ref)
			if err != nil {
				return err
			}
			for _, name := range names {
				changes, err := removeUncalled(ctx, d, ref.Namespace, name)
				if removed = append(removed, changes...); err != nil {
					return err
				}
			}
			return nil
		}})
	return append(changes, removed...), err
}

// deployedWith returns the names of the extenders that were deployed with a scheduler: those that
// its last revision calls, and, since a run may have been killed before it saved one, those whose
// own last revision belongs to d.Owner.
func deployedWith(ctx context.Context, d deploy.Deps, ref SchedulerRef) ([]string, error) {
	former, err := ReadFormer(ctx, d, ref.Namespace, ref.Name)
	switch {
	case errors.As(err, new(*unreadableError)):
		d.Warnf("extenders of scheduler %s may be left: %v", ref, err)
	case err != nil:
		return nil, err
	}
	var names []string
	for _, e := range former.Extenders {
		if !e.Sidecar && !e.Deployed.Added && manifest.ValidateName(e.Name) == nil {
			names = append(names, e.Name)
		}
	}
	deployments, err := d.Cluster.Deployments(ctx, ref.Namespace)
	if err != nil {
		return nil, err
	}
	for _, o := range deployments {
		if o.GetLabels()[ownership.LabelName] != ownership.Extender || o.GetNamespace() != ref.Namespace || d.Owner == "" {
			continue
		}
		revisions, err := d.Cluster.Revisions(ctx, ref.Namespace, o.GetName())
		if err != nil {
			return nil, err
		}
		if n := len(revisions); n > 0 && revisions[n-1].By == d.Owner {
			names = append(names, o.GetName())
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// removeUncalled removes an extender that no scheduler calls.
func removeUncalled(ctx context.Context, d deploy.Deps, namespace, name string) (apply.ChangeSet, error) {
	owned, err := d.Cluster.Owned(ctx, name, namespace)
	if err != nil {
		return nil, err
	}
	// Revisions, which an interrupted removal leaves until its end, have no application label.
	if app := deploy.AppOf(owned); app != "" && app != ownership.Extender ||
		!slices.Contains(deploy.NamespacesOf(owned), namespace) {
		return nil, nil // the name is of something else meanwhile
	}
	calling, err := callers(ctx, d, namespace, name)
	switch {
	case errors.As(err, new(*unreadableError)):
		d.Warnf("extender %s stays, because a scheduler may call it: %v", name, err)
		return nil, nil
	case err != nil:
		return nil, err
	}
	var by []string
	for _, ref := range sortedRefs(calling) {
		by = append(by, ref.String())
	}
	for _, node := range NodesCalling(owned) {
		by = append(by, "the default scheduler of node "+node)
	}
	if len(by) > 0 {
		if d.Note != nil {
			d.Note("extender " + name + " stays: it is called by " + strings.Join(by, ", "))
		}
		return nil, nil
	}
	return Uninstall(ctx, d, UninstallOptions{Name: name, Namespace: namespace})
}
