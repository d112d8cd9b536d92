package extenders

import (
	"context"

	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
)

// SchedulerRef names a second scheduler.
type SchedulerRef struct{ Namespace, Name string }

// String returns namespace/name.
func (r SchedulerRef) String() string { return r.Namespace + "/" + r.Name }

// callers returns the schedulers that call the extender of a namespace, and how. Without permission
// to list the schedulers of all namespaces, these are the ones of its namespace.
func callers(ctx context.Context, d deploy.Deps, namespace, extender string) (map[SchedulerRef]manifest.Wiring, error) {
	deployments, err := d.Finder.Deployments(ctx, namespace)
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
