package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/internal/apply"
	"github.com/pmk-sched/pmk-sched/internal/configcheck"
	"github.com/pmk-sched/pmk-sched/internal/manifest"
	"github.com/pmk-sched/pmk-sched/internal/problem"
	"github.com/pmk-sched/pmk-sched/internal/steps"
)

// Applier changes a cluster and looks at what is ours in it.
type Applier interface {
	Plan(ctx context.Context, objs []*unstructured.Unstructured) (apply.ChangeSet, error)
	Apply(ctx context.Context, objs []*unstructured.Unstructured) (apply.ChangeSet, error)
	Delete(ctx context.Context, objs []*unstructured.Unstructured) (apply.ChangeSet, error)
	Prune(ctx context.Context, ns, name string) (apply.ChangeSet, error)
	Owned(ctx context.Context, name, ns string) ([]*unstructured.Unstructured, error)
	DeleteLeaderLease(ctx context.Context, ns, name string) (apply.Change, error)
	WaitStable(ctx context.Context, ns, deployment string, o apply.WaitOptions) error
}

// Ledger keeps the revisions of a scheduler.
type Ledger interface {
	SaveRevision(ctx context.Context, ns, name, description string, objs []*unstructured.Unstructured) (*apply.Revision, error)
	SetRevisionStatus(ctx context.Context, r *apply.Revision, status apply.RevisionStatus, reason string) error
	Revisions(ctx context.Context, ns, name string) ([]*apply.Revision, error)
}

// Locker keeps two runs for one scheduler apart.
type Locker interface {
	Lock(ctx context.Context, ns, name, holder string) (unlock func(context.Context) error, err error)
}

// Finder finds the Deployments of ours, of whatever name.
type Finder interface {
	Deployments(ctx context.Context, ns string) ([]*unstructured.Unstructured, error)
}

// Deps is what the steps need from outside.
type Deps struct {
	Applier Applier
	Ledger  Ledger
	Locker  Locker
	// Holder says who runs this, for the lock: "root@node-1 pid 4711".
	Holder string
	// Preflight asks, before anything is touched, whether the plan can be
	// carried out.
	Preflight func(ctx context.Context, plan *Plan) error
	// Binary finds the kube-scheduler that is in the plan's image, to ask it
	// about the configuration; dir is a temporary folder to put it in. Its
	// error is configcheck.ErrNoBinary where none can be had.
	Binary func(ctx context.Context, plan *Plan, dir string) (configcheck.Binary, error)
	// Finder finds the schedulers that call an extender; needed for extenders only.
	Finder Finder
	// Warn is told what the person should know though it stops nothing, Note what was chosen; Note may be nil.
	Warn, Note func(text string)
	// OnStep is told of every step; may be nil.
	OnStep steps.OnStep
	// Log may be nil.
	Log *zap.Logger
}

// Warnf passes a formatted warning to Warn, if it is set.
func (d Deps) Warnf(format string, args ...any) {
	if d.Warn != nil {
		d.Warn(fmt.Sprintf(format, args...))
	}
}

// DeployOptions says how to run a plan.
type DeployOptions struct {
	// Timeout bounds the wait until the scheduler is stable; 0: 5 minutes.
	Timeout time.Duration
	// StableFor is how long the scheduler must be available without a change to be called stable; 0: 10 seconds.
	StableFor time.Duration
	// NoRollback leaves what a failed deployment made, to look at.
	NoRollback bool
}

// defaultTimeout leaves time to pull an image over a slow line.
const defaultTimeout = 5 * time.Minute

// Outcome is what Deploy did.
type Outcome struct {
	Revision int             `json:"revision"`
	Changes  apply.ChangeSet `json:"changes"`
}

// deployment is one run of a plan.
type deployment struct {
	Deps
	plan *Plan
	o    DeployOptions

	lock     held
	previous *apply.Revision // what ran before; nil if nothing did
	current  *apply.Revision
	live     bool // a Deployment of ours was there before
	lost     bool // nothing records what that Deployment was made from
	stable   bool // the new state works and is noted down
	outcome  Outcome
}

// Deploy runs the plan. It leaves the new state or, after a failure or when ctx
// ends, the one from before; with NoRollback it leaves what was reached. It can
// be run again after it was killed at any point, and then goes on.
func Deploy(ctx context.Context, d Deps, plan *Plan, o DeployOptions) (*Outcome, error) {
	if d.Log == nil {
		d.Log = zap.NewNop()
	}
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	this := &deployment{Deps: d, plan: plan, o: o}
	if err := steps.Run(ctx, this.steps(), d.OnStep); err != nil {
		return nil, this.explain(err)
	}
	return &this.outcome, nil
}

// steps is the whole of a deployment, in order.
func (d *deployment) steps() []steps.Step {
	restore := d.restore
	if d.o.NoRollback {
		restore = nil
	}
	return []steps.Step{
		{Name: "preflight checks", Do: d.preflight},
		{Name: "lock", Do: d.takeLock, Always: d.lock.release},
		{Name: "check configuration", Do: d.checkConfiguration},
		{Name: "save revision", Do: d.saveRevision, Undo: d.markFailed},
		{Name: "apply", Do: d.apply, Undo: restore},
		{Name: "wait until stable", Do: d.waitStable},
		{Name: "mark deployed", Do: d.markDeployed, Commit: true},
		{Name: "prune", Do: d.prune},
	}
}

func (d *deployment) preflight(ctx context.Context) error {
	if d.Preflight != nil {
		if err := d.Preflight(ctx, d.plan); err != nil {
			return err
		}
	}
	owned, err := d.Applier.Owned(ctx, d.plan.Name, d.plan.Namespace)
	if err != nil {
		return err
	}
	d.live = slices.ContainsFunc(owned, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Deployment" })
	if app := AppOf(owned); app != "" && app != d.plan.app() {
		return problem.Invalidf("choose another --name", "%s is the name of a %s already", d.plan.Name, app)
	}
	return onlyIn(d.plan.Namespace, d.plan.Name, owned)
}

func (d *deployment) takeLock(ctx context.Context) error {
	return d.lock.take(ctx, d.Deps, d.plan.Namespace, d.plan.Name)
}

func (d *deployment) checkConfiguration(ctx context.Context) error {
	return checkConfiguration(ctx, d.Deps, d.plan)
}

// saveRevision writes what is about to be applied before the cluster is
// touched. When the last deployed revision is the same as the plan, it is used
// again; the ledger closes what an earlier run left pending.
func (d *deployment) saveRevision(ctx context.Context) error {
	revisions, err := d.Ledger.Revisions(ctx, d.plan.Namespace, d.plan.Name)
	if err != nil {
		return err
	}
	d.previous = apply.LastDeployed(revisions)
	if d.lost = d.live && len(revisions) == 0; d.lost {
		d.Warnf("scheduler %s runs, but no readable revision says from what: if this deployment fails there is no way back", d.plan.Name)
	}
	if n := len(revisions); n > 0 && revisions[n-1].Status == apply.Pending {
		d.Warnf("revision %d was left pending by a run that was stopped; going on", revisions[n-1].Number)
	} else if d.previous != nil && SameObjects(d.previous.Objects, d.plan.Objects) {
		d.current, d.outcome.Revision = d.previous, d.previous.Number
		return nil
	}
	d.current, err = d.Ledger.SaveRevision(ctx, d.plan.Namespace, d.plan.Name, d.plan.Description(), d.plan.Objects)
	if err == nil {
		d.outcome.Revision = d.current.Number
	}
	return err
}

// again says that the plan is the last deployed revision.
func (d *deployment) again() bool { return d.previous != nil && d.current == d.previous }

func (d *deployment) markFailed(ctx context.Context, cause error) error {
	if d.current == nil || d.again() {
		return nil
	}
	return d.Ledger.SetRevisionStatus(ctx, d.current, apply.Failed, cause.Error())
}

func (d *deployment) apply(ctx context.Context) error {
	changes, err := d.Applier.Apply(ctx, d.plan.Objects)
	d.outcome.Changes = changes
	return err
}

// restore brings back the last deployed revision, or removes everything when
// there was none. When that revision is the one that was deployed again there is
// nothing to go back to; nor is there when no record of what ran before is left:
// then what was reached stays, rather than nothing.
func (d *deployment) restore(ctx context.Context, _ error) error {
	if d.again() || d.lost {
		return nil
	}
	var keep []*unstructured.Unstructured
	if d.previous != nil {
		keep = d.previous.Objects
		if _, err := d.Applier.Apply(ctx, keep); err != nil {
			return err
		}
	}
	owned, err := d.Applier.Owned(ctx, d.plan.Name, d.plan.Namespace)
	if err != nil {
		return err
	}
	if _, err := d.Applier.Delete(ctx, without(parts(owned), keep)); err != nil {
		return err
	}
	if d.previous == nil {
		_, err := d.Applier.DeleteLeaderLease(ctx, d.plan.Namespace, d.plan.Name)
		return err
	}
	return d.Applier.WaitStable(ctx, d.plan.Namespace, d.plan.Name, apply.WaitOptions{StableFor: d.o.StableFor})
}

func (d *deployment) waitStable(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, d.o.Timeout)
	defer cancel()
	return d.Applier.WaitStable(ctx, d.plan.Namespace, d.plan.Name, apply.WaitOptions{StableFor: d.o.StableFor})
}

func (d *deployment) markDeployed(ctx context.Context) error {
	if d.current.Status != apply.Deployed {
		if err := d.Ledger.SetRevisionStatus(ctx, d.current, apply.Deployed, ""); err != nil {
			return err
		}
	}
	d.stable = true
	return nil
}

// prune removes what no kept revision needs: former configurations, and objects
// of kinds that the plan does not have any more.
func (d *deployment) prune(ctx context.Context) error {
	owned, err := d.Applier.Owned(ctx, d.plan.Name, d.plan.Namespace)
	if err != nil {
		return err
	}
	stale := slices.DeleteFunc(without(parts(owned), d.plan.Objects), isConfiguration)
	removed, err := d.Applier.Delete(ctx, stale)
	d.outcome.Changes = append(d.outcome.Changes, removed...)
	if err != nil {
		return err
	}
	removed, err = d.Applier.Prune(ctx, d.plan.Namespace, d.plan.Name)
	d.outcome.Changes = append(d.outcome.Changes, removed...)
	return err
}

// checkConfiguration has the scheduler's own binary read the configuration, or
// says that it cannot.
func checkConfiguration(ctx context.Context, d Deps, plan *Plan) (err error) {
	if plan.Scheduler.Configuration == nil {
		return nil // an extender's, or one that was deployed before
	}
	dir, err := os.MkdirTemp("", "pmk-sched-check-")
	if err != nil {
		return fmt.Errorf("make a folder for the check: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	binary, err := d.Binary(ctx, plan, dir)
	if err == nil {
		d.Log.Info("checking the configuration with the scheduler's own binary", zap.String("binary", binary.Path), zap.String("from", binary.Origin))
		config := plan.Scheduler.Configuration
		args, e := configcheck.WithPolicy(dir, config)
		if e != nil {
			return e
		}
		err = configcheck.Check(ctx, binary, dir, config.YAML, manifest.KubeconfigPath(plan.Name), args)
	}
	if errors.Is(err, configcheck.ErrNoBinary) {
		d.Warnf("the configuration was checked by pmk-sched's own knowledge of %s only: %v", plan.Release, err)
		return nil
	}
	if errors.Is(err, configcheck.ErrPartlyChecked) {
		d.Warnf("%v", err)
		return nil
	}
	return err
}
