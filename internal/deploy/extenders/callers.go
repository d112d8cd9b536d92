package extenders

import (
	"context"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
)

// SchedulerRef names a second scheduler.
type SchedulerRef struct{ Namespace, Name string }

// String returns namespace/name.
func (r SchedulerRef) String() string { return r.Namespace + "/" + r.Name }

// callers returns the schedulers that call the extender in a namespace, with its entry in their
// requests. It is an error if the user may not list the schedulers of all namespaces: one that is
// not found would lose its extender. The controller has permissions in its namespace only, and
// finds the schedulers there.
func callers(
	ctx context.Context, d deploy.Deps, namespace, extender string,
) (map[SchedulerRef]v1alpha1.Extender, error) {
	in := ""
	if d.Owner != "" {
		in = namespace
	}
	deployments, err := d.Cluster.Deployments(ctx, in)
	if err != nil {
		return nil, err
	}
	found := map[SchedulerRef]v1alpha1.Extender{}
	for _, o := range deployments {
		if o.GetLabels()[ownership.LabelName] == ownership.Extender {
			continue
		}
		former, err := ReadFormer(ctx, d, o.GetNamespace(), o.GetName())
		if err != nil {
			return nil, err
		}
		for _, entry := range former.Extenders {
			if entry.Name == extender {
				found[SchedulerRef{o.GetNamespace(), o.GetName()}] = entry
			}
		}
	}
	return found, nil
}
