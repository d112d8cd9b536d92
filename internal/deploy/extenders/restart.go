package extenders

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
)

// RestartOptions describe an extender's restart.
type RestartOptions struct {
	Name, Namespace string
	// Image of the new pods. If it is empty, they have the current image.
	Image string
	Now   time.Time
	deploy.RunOptions
}

// Restart rolls out new pods for an extender, or for the schedulers that have it as a sidecar, and
// waits until they are stable. A Deployment that does not become stable is rolled back.
func Restart(ctx context.Context, d deploy.Deps, x RestartOptions) (*Outcome, error) {
	out := &Outcome{Extender: x.Name, Schedulers: []string{}}
	calling, err := callers(ctx, d, x.Namespace, x.Name)
	if err != nil {
		return nil, fmt.Errorf("restart extender %s: %w", x.Name, err)
	}
	var plans []*deploy.Plan
	for _, ref := range sortedRefs(calling) {
		if x.Image == "" {
			break
		}
		if x.Image, err = signedFor(ctx, d, ref, x.Image); err != nil {
			return nil, fmt.Errorf("restart extender %s: %w", x.Name, err)
		}
	}
	for _, ref := range sortedRefs(calling) {
		entry := calling[ref]
		if out.Address = entry.Deployed.URLPrefix; !entry.Sidecar {
			continue
		}
		last, err := lastOf(ctx, d, ref)
		if err != nil {
			return nil, err
		}
		out.Address = manifest.SidecarURL(int32(entry.Deployed.Port))
		entry.Deployed.Image = cmp.Or(x.Image, entry.Deployed.Image)
		plan, err := deploy.PlanOf(last)
		if err != nil {
			return nil, err
		}
		if err := plan.SetExtenders([]v1alpha1.Extender{entry}); err != nil {
			return nil, err
		}
		plans = append(plans, plan)
		out.Schedulers = append(out.Schedulers, ref.String())
	}
	if len(plans) == 0 {
		last, err := lastOf(ctx, d, SchedulerRef{x.Namespace, x.Name})
		if err != nil {
			return nil, problem.Invalidf("deploy it first: `pmk-sched extender deploy --name "+x.Name+"`",
				"extender %s is not deployed in namespace %s", x.Name, x.Namespace)
		}
		plan, err := deploy.PlanOf(last)
		if err != nil {
			return nil, err
		}
		if plan.Extender == nil {
			return nil, problem.Invalidf("", "%s is a scheduler, not an extender", x.Name)
		}
		plans = append(plans, plan)
	}
	for _, plan := range plans {
		if err := x.rollOut(ctx, d, plan, out); err != nil {
			return nil, fmt.Errorf("restart extender %s: %w", x.Name, err)
		}
	}
	return out, nil
}

// rollOut replaces one Deployment's pods.
func (x RestartOptions) rollOut(ctx context.Context, d deploy.Deps, plan *deploy.Plan, out *Outcome) error {
	restarted := x.Now.UTC().Format(time.RFC3339)
	switch {
	case plan.Extender != nil && x.Image != "":
		plan.Extender.Image, plan.Scheduler.Image = x.Image, x.Image
	case plan.Extender != nil:
		plan.Extender.Restarted = restarted
	case x.Image == "":
		plan.Scheduler.Restarted = restarted
	}
	if err := plan.Render(); err != nil {
		return err
	}
	outcome, err := deploy.Deploy(ctx, d, plan, x.RunOptions)
	if err != nil {
		return err
	}
	out.Changes = append(out.Changes, outcome.Changes...)
	if plan.Extender != nil {
		out.Revision = outcome.Revision
	}
	return nil
}
