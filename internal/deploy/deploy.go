// Package deploy deploys and uninstalls a second scheduler.
//
// [NewPlan] turns a request and [Facts] into a [Plan], which is data: every
// decision is made and every object rendered, without I/O. [Deploy] runs a plan as a sequence of
// named steps, each with its undo; [Render], [Diff] and [DryRun] show the same plan without running
// it. [Uninstall] removes the objects that Deploy created.
//
// [Deps] are the steps' dependencies: a cluster, checks and the binary that will read the
// configuration.
package deploy

import (
	"cmp"
	"context"
	"slices"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/steps"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
)

// RunOptions are options for running a plan.
type RunOptions struct {
	// Timeout bounds the wait until the scheduler is stable. The default is 5 minutes.
	Timeout time.Duration
	// StableFor is the time that the scheduler must be available without a change to be stable. The
	// default is 10 seconds.
	StableFor time.Duration
	// NoRollback keeps a failed deployment for inspection.
	NoRollback bool
	// Stop, if set, stops a scheduler that pmk-sched does not manage and that the plan replaces: after
	// all checks, right before the plan is applied. Its undo starts that scheduler again.
	Stop *steps.Step
	// Verify, if set, proves that a stable scheduler schedules, before the former one is given up. It
	// is not called for an extender.
	Verify func(ctx context.Context, plan *Plan) error
}

// defaultTimeout leaves time to pull an image over a slow line.
const defaultTimeout = 5 * time.Minute

// UndoTimeout bounds the undo that deploys a former revision with these options: the wait until it
// is stable, and [steps.UndoTimeout] for everything else.
func (o RunOptions) UndoTimeout() time.Duration {
	return cmp.Or(o.Timeout, defaultTimeout) + steps.UndoTimeout
}

// Outcome is the result of Deploy.
type Outcome struct {
	Revision int             `json:"revision"`
	Changes  apply.ChangeSet `json:"changes"`
	held     []grant         // the permissions before the run
}

// deployRun is one run of a plan.
type deployRun struct {
	Deps
	plan *Plan
	o    RunOptions

	lock     lock
	previous *apply.Revision // the last deployed revision, or nil
	current  *apply.Revision
	live     bool    // the Deployment existed before
	lost     bool    // the Deployment existed without a readable revision
	held     []grant // the permissions before the run
	stable   bool    // the new revision is stable and marked deployed
	outcome  Outcome
	verified time.Time // when Verify succeeded
}

// Deploy runs the plan. If it fails or ctx ends, it restores the former state, unless NoRollback is
// set. It can be run again after it was killed at any point.
func Deploy(ctx context.Context, d Deps, plan *Plan, o RunOptions) (*Outcome, error) {
	if d.Log == nil {
		d.Log = zap.NewNop()
	}
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	run := &deployRun{Deps: d, plan: plan, o: o}
	if err := steps.Run(ctx, run.steps(), d.OnStep); err != nil {
		return nil, run.explain(err)
	}
	return &run.outcome, nil
}

// steps returns a deployment's steps.
func (d *deployRun) steps() []steps.Step {
	restore := d.restore
	if d.o.NoRollback {
		restore = nil
	}
	list := []steps.Step{
		{Name: "preflight checks", Do: d.preflight},
		{Name: "lock", Hold: d.takeLock, Always: d.lock.release},
		{Name: "check configuration", Do: d.checkConfiguration},
		{Name: "save revision", Do: d.saveRevision, Undo: d.markFailed},
	}
	if d.o.Stop != nil {
		list = append(list, *d.o.Stop)
	}
	list = append(list,
		steps.Step{Name: "apply", Do: d.apply, Undo: restore},
		steps.Step{Name: "wait until stable", Do: d.waitStable},
	)
	if d.o.Verify != nil && d.plan.Extender == nil {
		list = append(list, steps.Step{Name: "verify", Do: d.verify})
	}
	if routing, _ := registrations(d.plan.Objects); len(routing) > 0 {
		list = append(list, steps.Step{Name: "route pods", Do: d.routePods})
	}
	return append(list,
		steps.Step{Name: "mark deployed", Do: d.markDeployed, Commit: true},
		steps.Step{Name: "prune", Do: d.prune},
	)
}

func (d *deployRun) preflight(ctx context.Context) error {
	if d.Preflight != nil {
		if err := d.Preflight(ctx, d.plan); err != nil {
			return err
		}
	}
	owned, err := d.Cluster.Owned(ctx, d.plan.Name, d.plan.Namespace)
	if err != nil {
		return err
	}
	d.held = d.granter().grants(owned)
	d.live = slices.ContainsFunc(owned, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Deployment" })
	if app := AppOf(owned); app != "" && app != d.plan.app() {
		return problem.Invalidf("choose another --name", "name %s is in use by a %s", d.plan.Name, app)
	}
	if err := onlyIn(d.plan.Namespace, d.plan.Name, owned); err != nil {
		return err
	}
	d.outcome.held = d.held
	return nil
}

func (d *deployRun) takeLock(ctx context.Context) (context.Context, error) {
	return d.lock.take(ctx, d.Deps, d.plan.Namespace, d.plan.Name)
}

func (d *deployRun) checkConfiguration(ctx context.Context) error {
	return checkConfiguration(ctx, d.Deps, d.plan)
}

// saveRevision records the plan's objects before anything changes. If the last deployed revision
// equals the plan, it is used again. The ledger closes a pending revision from an earlier run.
func (d *deployRun) apply(ctx context.Context) error {
	_, objects := registrations(d.plan.Objects)
	objects, err := d.tolerateShortage(ctx, objects)
	if err != nil {
		return err
	}
	d.outcome.Changes, err = d.Cluster.Apply(ctx, objects)
	return err
}

// tolerateShortage keeps the rollout of objects, from the plan or a revision, from waiting for
// nodes that are not ready or cordoned.
func (d *deployRun) tolerateShortage(ctx context.Context,
	objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Deployment" })
	if i < 0 {
		return objects, nil
	}
	shortage, err := d.Cluster.Shortage(ctx, objects[i])
	if err != nil {
		return nil, err
	}
	return manifest.TolerateShortage(objects, shortage)
}

// restore deploys the last deployed revision again, or removes everything if there is none. It does
// nothing if the plan is that revision, or if the former state is not recorded: a broken scheduler
// is better than none.
func (d *deployRun) restore(ctx context.Context, _ error) error {
	if d.again() || d.lost {
		return nil
	}
	var keep []*unstructured.Unstructured
	if d.previous != nil {
		if err := d.checkRestorable(d.previous); err != nil {
			return err
		}
		keep = d.previous.Objects
		objects, err := d.tolerateShortage(ctx, keep)
		if err != nil {
			return err
		}
		if _, err := d.Cluster.Apply(ctx, objects); err != nil {
			return err
		}
	}
	owned, err := d.Cluster.Owned(ctx, d.plan.Name, d.plan.Namespace)
	if err != nil {
		return err
	}
	if _, err := d.Cluster.Delete(ctx, without(parts(owned), keep)); err != nil {
		return err
	}
	if d.previous == nil {
		_, err := d.Cluster.DeleteLeaderLease(ctx, d.plan.Namespace, d.plan.Name)
		return err
	}
	return d.wait(ctx)
}

func (d *deployRun) wait(ctx context.Context) error {
	return d.Cluster.WaitStable(ctx, d.plan.Namespace, d.plan.Name, apply.WaitOptions{
		StableFor: d.o.StableFor, OnMissing: func(state string) { d.Warnf("%s", state) },
	})
}

func (d *deployRun) waitStable(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, d.o.Timeout)
	defer cancel()
	return d.wait(ctx)
}

func (d *deployRun) verify(ctx context.Context) error {
	err := d.o.Verify(ctx, d.plan)
	if err == nil {
		d.verified = time.Now()
	}
	return err
}

// prune removes objects that no kept revision needs: former configurations, and objects that the
// plan does not have any more.
func (d *deployRun) prune(ctx context.Context) error {
	owned, err := d.Cluster.Owned(ctx, d.plan.Name, d.plan.Namespace)
	if err != nil {
		return err
	}
	stale := slices.DeleteFunc(without(parts(owned), d.plan.Objects), isConfiguration)
	removed, err := d.Cluster.Delete(ctx, stale)
	d.outcome.Changes = append(d.outcome.Changes, removed...)
	if err != nil {
		return err
	}
	removed, err = d.Cluster.Prune(ctx, d.plan.Namespace, d.plan.Name)
	d.outcome.Changes = append(d.outcome.Changes, removed...)
	return err
}
