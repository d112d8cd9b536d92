// Package replace replaces a control-plane node's default scheduler, which is a static pod, and
// restores it.
package replace

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/internal/artifact/configcheck"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/steps"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
)

// Applier applies and deletes objects.
type Applier interface {
	Apply(ctx context.Context, objs []*unstructured.Unstructured) (apply.ChangeSet, error)
	Delete(ctx context.Context, objs []*unstructured.Unstructured) (apply.ChangeSet, error)
}

// Deps are the dependencies of Run, Restore and ReadStatus.
type Deps struct {
	// Files are the node's files.
	Files staticpod.Files
	// Kube is a client for the API server whose requests time out soon.
	Kube kubernetes.Interface
	// Applier changes the plugins' permissions.
	Applier Applier
	// EnsureImage makes sure that the node's container runtime has an image.
	EnsureImage func(ctx context.Context, image string) error
	// Signed verifies that a key signed an image, and returns its name with the digest.
	Signed func(ctx context.Context, r pack.SignatureRequest) (string, error)
	// Binary finds the kube-scheduler that a container with the image runs, and writes it to directory
	// dir. command lists the programs that the container's command names: wrappers, then the
	// scheduler.
	Binary func(ctx context.Context, image string, command []string, dir string) (configcheck.Binary, error)
	// CheckProgram has the binary check its flags and the configuration, like [deploy.CheckProgram].
	CheckProgram func(ctx context.Context, binary configcheck.Binary, dir string, c deploy.ProgramCheck) error
	// Verify proves that the plan's scheduler schedules a pod that names no scheduler. standby reports
	// that another node's scheduler leads.
	Verify func(ctx context.Context, plan *Plan, standby bool) error
	// Holder identifies this process in the lock.
	Holder string
	// Now is the clock that names backups.
	Now func() time.Time
	// Warn and Note print to the user; OnStep observes every step.
	Warn, Note func(text string)
	OnStep     steps.OnStep
	Log        *zap.Logger
}

const (
	// restoreTimeout bounds the wait for the former scheduler; if the whole pod is restarted, the API
	// server alone takes a minute.
	restoreTimeout = 150 * time.Second
	// restoreSettle is the time that the former scheduler must run without a restart: longer than a
	// kubelet takes to notice a manifest.
	restoreSettle = 5 * time.Second
	// keepBackups is the number of closed backups that are kept.
	keepBackups = 10
)

// Outcome is the result of Run.
type Outcome struct {
	Node   string `json:"node"`
	Image  string `json:"image"`
	Backup string `json:"backup"`
	// Changed is false if the manifest was up to date.
	Changed bool `json:"changed"`
	// SecondsWithout is the number of seconds during which no scheduler held the lease.
	SecondsWithout float64 `json:"secondsWithoutScheduler"`
	// Leads is false if another node's scheduler leads.
	Leads bool `json:"leads"`
}

// replaceRun is one call to Run.
type replaceRun struct {
	Deps
	o      Options
	info   *inspect.Info
	plan   *Plan
	unlock func() error
	// former are the backups from earlier runs that are still open, the newest first.
	former []*staticpod.Backup
	backup *staticpod.Backup
	// manifest and env are the changes to the manifest and to the node agent's settings; env may be
	// nil.
	manifest, env *change
	want          staticpod.Want
	ran           *staticpod.Ran
	// apiAway reports that the API server stopped answering after the swap.
	apiAway bool
	// swapped reports that this run changed the manifest.
	swapped bool
	// reverted reports that the previous manifest was restored, undoFailed that not everything was,
	// and unfinished that a killed run's manifest is still there.
	reverted, undoFailed, unfinished bool
	// notMarked is the reason why the journal does not record the success.
	notMarked error
}

// Run replaces this node's default scheduler. Afterwards either the new scheduler runs, verified,
// or the former one runs again. It can be run again after it was killed at any point, or undone
// with Restore.
func Run(ctx context.Context, d Deps, info *inspect.Info, o Options) (*Outcome, error) {
	o.Timeout, o.StableFor = cmp.Or(o.Timeout, DefaultTimeout), cmp.Or(o.StableFor, DefaultStableFor)
	r := &replaceRun{Deps: d, o: o, info: info}
	if err := steps.Run(ctx, r.steps(), d.OnStep); err != nil {
		return nil, r.explain(err)
	}
	return r.outcome(), nil
}

// DryRun makes the same checks as Run, and returns its plan.
func DryRun(ctx context.Context, d Deps, info *inspect.Info, o Options) (*Plan, error) {
	r := &replaceRun{Deps: d, o: o, info: info}
	if err := steps.Run(ctx, []steps.Step{{Name: "check", Do: r.check}}, d.OnStep); err != nil {
		return nil, fmt.Errorf("replace the default scheduler (dry run): %w", err)
	}
	return r.plan, nil
}

// steps returns a replacement's steps. From the backup on, the journal records which step was
// started.
func (r *replaceRun) steps() []steps.Step {
	return []steps.Step{
		// A plan that is made under the lock does not see another run's work.
		{Name: "lock", Do: r.lock, Always: r.release},
		{Name: "check", Do: r.check},
		{Name: "back up", Do: r.backUp, Undo: r.markUndone},
		r.recorded(steps.Step{Name: "apply the plugins' role", Do: r.applyObjects, Undo: r.removeObjects}),
		r.recorded(steps.Step{Name: "write configuration", Do: r.writeConfiguration, Undo: r.removeConfiguration}),
		r.recorded(steps.Step{Name: "swap", Do: r.swap, Undo: r.swapBack}),
		r.recorded(steps.Step{Name: "wait until it runs", Do: r.waitRunning}),
		r.recorded(steps.Step{Name: "verify", Do: r.verify}),
		r.recorded(steps.Step{Name: "wait until stable", Do: r.waitStable}),
		{Name: "mark replaced", Do: r.markReplaced, Commit: true},
		{Name: "clean up", Do: r.cleanUp},
	}
}

// recorded writes a step's name into the journal before the step starts. After the swap a journal
// that cannot be written does not cause an undo: the scheduler may work.
func (r *replaceRun) recorded(s steps.Step) steps.Step {
	do, undo := s.Do, s.Undo
	s.Do = func(ctx context.Context) error {
		if err := r.backup.Note(s.Name, staticpod.Started); err != nil {
			if !r.manifest.applied {
				return err
			}
			r.Warn(err.Error())
		}
		return do(ctx)
	}
	if undo != nil {
		s.Undo = func(ctx context.Context, cause error) error {
			err := undo(ctx, cause)
			r.undoFailed = r.undoFailed || err != nil
			return err
		}
	}
	return s
}

func (r *replaceRun) check(ctx context.Context) (err error) {
	if r.plan, err = (&planner{Deps: r.Deps, info: r.info, o: r.o}).plan(ctx); err != nil {
		return err
	}
	for _, n := range r.plan.Notes {
		r.Note(n)
	}
	for _, w := range r.plan.Warnings {
		r.Warn(w)
	}
	return nil
}

func (r *replaceRun) lock(context.Context) (err error) {
	r.unlock, err = staticpod.Lock(r.Files, r.Holder)
	return err
}

func (r *replaceRun) release(context.Context) error {
	if r.unlock == nil {
		return nil
	}
	return r.unlock()
}

func (r *replaceRun) swap(ctx context.Context) error {
	upToDate := bytes.Equal(r.plan.Old.Data, r.plan.New.Data)
	r.want = staticpod.Want{
		Before: r.plan.Before, Forward: true, Replacement: r.plan.ID, Pinned: r.plan.Pinned, Changed: !upToDate,
	}
	// A look right before the swap is more exact than the plan's.
	if seen, err := r.watch(r.plan.Target).Observe(ctx); err == nil {
		r.want.Before = seen
	}
	if upToDate || r.want.Before.Replacement == r.plan.ID {
		// After a killed run, the kubelet may not have read the latest manifest.
		r.want.Changed, r.want.Uncertain, r.want.Settle = false, true, restoreSettle
	}
	if err := r.manifest.apply(r.backup); err != nil {
		return err
	}
	r.swapped = !upToDate
	return nil
}

func (r *replaceRun) waitRunning(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	r.ran, err = r.watch(r.plan.Target).Wait(ctx, r.want)
	return r.record(err)
}

// record keeps the error details that the swap's undo needs.
func (r *replaceRun) record(err error) error {
	var away *staticpod.APIAwayError
	r.apiAway = errors.As(err, &away)
	var failed *staticpod.NotRunningError
	if errors.As(err, &failed) && failed.Container != "" {
		r.ran = &staticpod.Ran{Seen: staticpod.Seen{ContainerID: failed.Container}}
	}
	return err
}

// verify verifies the scheduler while it runs. If it ends meanwhile, that is the cause, and nothing
// more is waited for.
func (r *replaceRun) verify(ctx context.Context) error {
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		defer stop()
		ended <- r.watch(r.plan.Target).Stay(running, r.want, r.ran, math.MaxInt64)
	}()
	err := r.Verify(running, r.plan, !r.ran.Leads && r.plan.Elects)
	stop()
	var failed *staticpod.NotRunningError
	if cause := <-ended; err != nil && ctx.Err() == nil && errors.As(cause, &failed) {
		return r.record(cause)
	}
	return err
}

func (r *replaceRun) waitStable(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.o.Timeout+r.o.StableFor)
	defer cancel()
	return r.record(r.watch(r.plan.Target).Stay(ctx, r.want, r.ran, r.o.StableFor))
}

func (r *replaceRun) outcome() *Outcome {
	return &Outcome{
		Node: r.plan.Node, Image: r.plan.Image, Backup: r.backup.Dir(), Changed: r.swapped,
		SecondsWithout: r.ran.Without.Seconds(), Leads: r.ran.Leads,
	}
}

// explain adds the node's state after a failed run.
func (r *replaceRun) explain(err error) error {
	err = fmt.Errorf("replace the default scheduler: %w", err)
	switch {
	case errors.Is(err, steps.ErrUndo):
		return problem.WithHint(err,
			"the original state could not be restored; run `pmk-sched restore` to retry, or follow the README in "+
				r.backup.Dir())
	case r.backup != nil && r.backup.State == staticpod.Replaced:
		return problem.WithHint(err, "the new scheduler runs and is verified; replace again to finish")
	case r.reverted:
		return problem.WithHint(err, "the original manifest is restored and its scheduler is ready")
	case r.unfinished:
		return problem.WithHint(err,
			"the manifest of an interrupted replacement is still in place; run `pmk-sched restore` to restore the original")
	default:
		return err
	}
}
