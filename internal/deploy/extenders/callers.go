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

// callers returns the schedulers that call the extender in a namespace, and how. It is an error if
// the user may not list the schedulers of all namespaces: one that is not found would lose its
// extender. The controller has permissions in its namespace only, and finds the schedulers there.
func callers(ctx context.Context, d deploy.Deps, namespace, extender string) (map[SchedulerRef]manifest.Wiring, error) {
	in := ""
	if d.Owner != "" {
		in = namespace
	}
	deployments, err := d.Cluster.Deployments(ctx, in)
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
