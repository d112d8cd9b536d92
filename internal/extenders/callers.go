package extenders

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/internal/apply"
	"github.com/pmk-sched/pmk-sched/internal/install"
	"github.com/pmk-sched/pmk-sched/internal/manifest"
)

// SchedulerRef names a scheduler that was deployed.
type SchedulerRef struct{ Namespace, Name string }

// String is namespace/name.
func (r SchedulerRef) String() string { return r.Namespace + "/" + r.Name }

// Wired are the extenders of a scheduler as it was deployed last. Those that are Alone stay when it is deployed again.
func Wired(ctx context.Context, d install.Deps, namespace, name string) ([]manifest.Wiring, error) {
	revisions, err := d.Ledger.Revisions(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	last := apply.LastDeployed(revisions)
	if last == nil {
		return nil, nil
	}
	return manifest.Wirings(last.Objects)
}

// callers are the schedulers that call an extender, and how.
func callers(ctx context.Context, d install.Deps, extender string) (map[SchedulerRef]manifest.Wiring, error) {
	deployments, err := d.Finder.Deployments(ctx, "")
	if err != nil {
		return nil, err
	}
	found := map[SchedulerRef]manifest.Wiring{}
	for _, o := range deployments {
		wirings, err := manifest.Wirings([]*unstructured.Unstructured{o})
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
