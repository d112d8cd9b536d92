package extenders

import (
	"context"

	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
)

// SchedulerRef names a second scheduler.
type SchedulerRef struct{ Namespace, Name string }

// String returns namespace/name.
func (r SchedulerRef) String() string { return r.Namespace + "/" + r.Name }

// wired returns the last deployed revision of a scheduler and its extenders. Wirings that are
// Alone stay when the scheduler is deployed again. The revision is nil if there is none.
func wired(ctx context.Context, d deploy.Deps, namespace, name string) (*apply.Revision, []manifest.Wiring, error) {
	revisions, err := d.Ledger.Revisions(ctx, namespace, name)
	if err != nil {
		return nil, nil, err
	}
	last := apply.LastDeployed(revisions)
	if last == nil {
		return nil, nil, nil
	}
	wirings, err := deploy.WiringsOf(last)
	return last, wirings, err
}

// numberOf returns the number of the revision that a plan replaces, or [deploy.NoRevision].
func numberOf(last *apply.Revision) int {
	if last == nil {
		return deploy.NoRevision
	}
	return last.Number
}

// callers returns the schedulers that call an extender, and how.
func callers(ctx context.Context, d deploy.Deps, extender string) (map[SchedulerRef]manifest.Wiring, error) {
	deployments, err := d.Finder.Deployments(ctx, "")
	if err != nil {
		return nil, err
	}
	found := map[SchedulerRef]manifest.Wiring{}
	for _, o := range deployments {
		if o.GetLabels()[ownership.LabelName] == ownership.Extender {
			continue
		}
		_, wirings, err := wired(ctx, d, o.GetNamespace(), o.GetName())
		if err != nil {
			return nil, err
		}
		for _, w := range wirings {
			if w.Extender.Name == extender {
				found[SchedulerRef{o.GetNamespace(), o.GetName()}] = w
			}
		}
	}
	return found, nil
}
