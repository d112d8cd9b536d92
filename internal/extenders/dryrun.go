package extenders

import (
	"cmp"
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/internal/apply"
	"github.com/pmk-sched/pmk-sched/internal/install"
	"github.com/pmk-sched/pmk-sched/internal/manifest"
)

// Plan is what Deploy would do, and how schedulers would call the extender: its own plan first, unless it is a sidecar, then that
// of each scheduler. Nothing is touched. Where d has no Applier no cluster is asked.
func Plan(ctx context.Context, d install.Deps, x Deployment) ([]*install.Plan, manifest.Wiring, error) {
	run := &extending{Deps: d, x: x, out: &Outcome{}}
	if _, err := x.Options.check(x.Release); err != nil {
		return nil, manifest.Wiring{}, err
	}
	var live []*unstructured.Unstructured
	if d.Applier != nil {
		if err := run.look(ctx); err != nil {
			return nil, manifest.Wiring{}, err
		}
		var err error
		if live, err = d.Applier.Owned(ctx, x.Options.Call.Name, cmp.Or(x.Options.Namespace, metav1.NamespaceSystem)); err != nil {
			return nil, manifest.Wiring{}, err
		}
	}
	var plans []*install.Plan
	var wiring manifest.Wiring
	if x.Options.Sidecar {
		var err error
		if wiring, err = x.Options.sidecarWiring(); err != nil {
			return nil, wiring, err
		}
	} else {
		plan, err := newPlan(x.Release, live, x.Options)
		if err != nil {
			return nil, wiring, err
		}
		plans, wiring = append(plans, plan), serviceWiring(x.Options.Call, plan, live)
	}
	for _, target := range run.targets() {
		last, err := lastOf(ctx, d, target)
		if err != nil {
			return nil, wiring, err
		}
		w := wiring
		before, was := run.wired[target]
		w.Alone = !was || before.Alone
		plan, err := install.Rewire(last, []manifest.Wiring{w}, nil)
		if err != nil {
			return nil, wiring, err
		}
		plans = append(plans, plan)
	}
	return plans, wiring, nil
}

// DryRun does for each plan what [install.DryRun] does.
func DryRun(ctx context.Context, d install.Deps, plans []*install.Plan) (apply.ChangeSet, error) {
	var all apply.ChangeSet
	for _, plan := range plans {
		changes, err := install.DryRun(ctx, d, plan)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", plan.Name, err)
		}
		all = append(all, changes...)
	}
	return all, nil
}
