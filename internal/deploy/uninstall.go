package deploy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/steps"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
)

// Uninstall ends a scheduler's route, waits until no routed pod waits for it, and removes its
// objects, the lease of its leader election, its revisions and finally the lock. The steps in more
// are run before the revisions are removed, which they may read. Objects without pmk-sched's labels
// stay. It can be run again after it was killed at any point. If the scheduler is in another
// namespace, it returns an error that names the namespace.
func Uninstall(ctx context.Context, d Deps, namespace, name string, more ...steps.Step) (apply.ChangeSet, error) {
	if err := manifest.ValidateName(name); err != nil {
		return nil, err
	}
	owned, err := d.Cluster.Owned(ctx, name, namespace)
	if err != nil {
		return nil, fmt.Errorf("uninstall %s: %w", name, err)
	}
	if len(owned) == 0 && len(more) == 0 {
		return nil, nil
	}
	if in := NamespacesOf(owned); len(in) > 0 && !slices.Contains(in, namespace) {
		return nil, problem.Invalidf("use -n "+in[0], "scheduler %s is in namespace %s, not in %s", name, in[0], namespace)
	}
	u := &uninstallRun{Deps: d, namespace: namespace, name: name}
	if err := steps.Run(ctx, u.steps(more), d.OnStep); err != nil {
		err = withChanges(fmt.Errorf("uninstall %s: %w", name, err), u.changes)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = problem.WithHint(err, "the node of one of its pods may be down; run uninstall again to continue")
		}
		return u.changes, err
	}
	return u.changes, nil
}

// uninstallRun is one call to Uninstall. Revisions are removed last, so that an interrupted run can
// be repeated.
type uninstallRun struct {
	Deps
	namespace, name string
	lock            lock
	changes         apply.ChangeSet
}

func (u *uninstallRun) steps(more []steps.Step) []steps.Step {
	list := append([]steps.Step{
		{Name: "lock", Hold: u.takeLock, Always: u.lock.release},
		{Name: "check owner", Do: u.checkOwner},
		{Name: "end route", Do: u.endRoute},
		{Name: "remove objects", Do: func(ctx context.Context) error { return u.remove(ctx, false) }},
		{Name: "remove lease", Do: u.removeLease},
	}, more...)
	return append(list,
		steps.Step{Name: "remove revisions", Do: func(ctx context.Context) error { return u.remove(ctx, true) }})
}

// takeLock takes the lock. A namespace that is being deleted accepts no lock, and no deployment
// either, from which the lock would protect.
func (u *uninstallRun) takeLock(ctx context.Context) (context.Context, error) {
	held, err := u.lock.take(ctx, u.Deps, u.namespace, u.name)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return ctx, nil
	}
	return held, err
}

func (u *uninstallRun) checkOwner(ctx context.Context) error {
	last, err := u.Cluster.LastDeployed(ctx, u.namespace, u.name)
	if err != nil {
		return err
	}
	return u.Deps.checkOwner(ctx, last)
}

func (u *uninstallRun) remove(ctx context.Context, revisions bool) error {
	owned, err := u.Cluster.Owned(ctx, u.name, u.namespace)
	if err != nil {
		return err
	}
	var stale []*unstructured.Unstructured
	for _, o := range owned {
		if isRevision(o) == revisions {
			stale = append(stale, o)
		}
	}
	changes, err := u.Cluster.Delete(ctx, stale)
	u.changes = append(u.changes, changes...)
	return err
}

func (u *uninstallRun) removeLease(ctx context.Context) error {
	change, err := u.Cluster.DeleteLeaderLease(ctx, u.namespace, u.name)
	if err == nil && change.Action != apply.Absent {
		u.changes = append(u.changes, change)
	}
	return err
}
