package replace

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/internal/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster"
	"github.com/pmk-sched/pmk-sched/internal/configcheck"
	"github.com/pmk-sched/pmk-sched/internal/problem"
	"github.com/pmk-sched/pmk-sched/internal/staticpod"
	"github.com/pmk-sched/pmk-sched/internal/steps"
)

// Applier applies and deletes objects.
type Applier interface {
	Apply(ctx context.Context, objs []*unstructured.Unstructured) (apply.ChangeSet, error)
	Delete(ctx context.Context, objs []*unstructured.Unstructured) (apply.ChangeSet, error)
}

// Deps is what Run, Restore and ReadStatus need from outside.
type Deps struct {
	// Files are the node's.
	Files staticpod.Files
	// Kube asks the API server; its requests end soon when nobody answers.
	Kube kubernetes.Interface
	// Applier applies and deletes the role of the plugins.
	Applier Applier
	// EnsureImage sees to it that the node's runtime has an image.
	EnsureImage func(ctx context.Context, image string) error
	// Binary finds the program in an image; dir is a folder to put it in.
	Binary func(ctx context.Context, image, dir string) (configcheck.Binary, error)
	// Verify proves with a pod that names no scheduler that the one of this
	// replacement schedules; standby says that another node's leads.
	Verify func(ctx context.Context, r *Plan, standby bool) error
	// Holder says who runs this, for the lock.
	Holder string
	// Now is the clock that names backups.
	Now func() time.Time
	// Warn and Note tell the person something; OnStep is told of every step.
	Warn, Note func(text string)
	OnStep     steps.OnStep
	Log        *zap.Logger
}

// Defaults of [Options].
const (
	DefaultTimeout = 3 * time.Minute
	DefaultSteady  = 25 * time.Second
	// backTimeout bounds the wait for the former scheduler; where the whole pod is
	// restarted the API server alone takes a minute.
	backTimeout = 150 * time.Second
	// backSettle is how long the former scheduler has to be seen without a break:
	// longer than a kubelet takes to notice a manifest.
	backSettle = 5 * time.Second
	// keepBackups is how many backups that are done with are kept.
	keepBackups = 10
)

// Outcome is what Replace did.
type Outcome struct {
	Node   string `json:"node"`
	Image  string `json:"image"`
	Backup string `json:"backup"`
	// Changed is false when everything was already as it has to be.
	Changed bool `json:"changed"`
	// SecondsWithout is how long no scheduler held the lease.
	SecondsWithout float64 `json:"secondsWithoutScheduler"`
	// Leads is false where another node's scheduler leads.
	Leads bool `json:"leads"`
}

// replacing is one run of Replace.
type replacing struct {
	Deps
	o      Options
	r      *Plan
	info   *cluster.Info
	unlock func() error
	// former is the backup of an earlier run that is not done with; nil if none.
	former *staticpod.Backup
	backup *staticpod.Backup
	want   staticpod.Want
	ran    *staticpod.Ran
	// apiAway says that the API server went away with the swap.
	apiAway bool
	swapped bool
}

// Run puts another scheduler in the place of this node's default one. It leaves
// the new one, proven, or after a failure the one from before, running again. It can
// be run again after it was killed at any point, or taken back with Restore.
func Run(ctx context.Context, d Deps, info *cluster.Info, o Options) (*Outcome, error) {
	o.Timeout, o.Steady = cmp.Or(o.Timeout, DefaultTimeout), cmp.Or(o.Steady, DefaultSteady)
	this := &replacing{Deps: d, o: o, info: info}
	if err := steps.Run(ctx, this.steps(), d.OnStep); err != nil {
		return nil, this.explain(err)
	}
	return this.outcome(), nil
}

// steps is the whole of a replacement, in order. From the backup on, the journal
// says which step was begun.
func (r *replacing) steps() []steps.Step {
	return []steps.Step{
		{Name: "check", Do: r.check},
		{Name: "lock", Do: r.lock, Always: r.release},
		{Name: "back up", Do: r.backUp, Undo: r.markUndone},
		r.noted(steps.Step{Name: "apply the plugins' role", Do: r.applyRules, Undo: r.removeRules}),
		r.noted(steps.Step{Name: "write configuration", Do: r.writeConfiguration, Undo: r.removeConfiguration}),
		r.noted(steps.Step{Name: "swap", Do: r.swap, Undo: r.swapBack}),
		r.noted(steps.Step{Name: "wait until it runs", Do: r.waitRunning}),
		r.noted(steps.Step{Name: "verify", Do: r.verify}),
		r.noted(steps.Step{Name: "watch it stay", Do: r.stay}),
		{Name: "mark replaced", Do: r.markReplaced, Commit: true},
		{Name: "tidy up", Do: r.tidy},
	}
}

// noted writes a step's name into the journal before the step begins.
func (r *replacing) noted(s steps.Step) steps.Step {
	do := s.Do
	s.Do = func(ctx context.Context) error {
		if err := r.backup.Note(s.Name, staticpod.Started); err != nil {
			return err
		}
		return do(ctx)
	}
	return s
}

func (r *replacing) check(ctx context.Context) error {
	r.r = &Plan{}
	p := &planner{Deps: r.Deps, info: r.info, o: r.o, r: r.r}
	if err := p.plan(ctx); err != nil {
		return err
	}
	for _, n := range r.r.Notes {
		r.Note(n)
	}
	for _, w := range r.r.Warnings {
		r.Warn(w)
	}
	return nil
}

// DryRun makes the same checks as Replace, and returns what it would do.
func DryRun(ctx context.Context, d Deps, info *cluster.Info, o Options) (*Plan, error) {
	this := &replacing{Deps: d, o: o, info: info}
	if err := steps.Run(ctx, []steps.Step{{Name: "check", Do: this.check}}, d.OnStep); err != nil {
		return nil, fmt.Errorf("replace the default scheduler (dry run): %w", err)
	}
	return this.r, nil
}

func (r *replacing) lock(context.Context) (err error) {
	r.unlock, err = staticpod.Lock(r.Files, r.Holder)
	return err
}

func (r *replacing) release(context.Context) error {
	if r.unlock == nil {
		return nil
	}
	return r.unlock()
}

func (r *replacing) swap(ctx context.Context) error {
	written := bytes.Equal(r.r.Old.Data, r.r.New.Data)
	r.want = staticpod.Want{
		Before: r.r.before, Forward: true, Replacement: r.r.id, Pinned: r.r.pinned, Changed: !written,
	}
	// What is seen now, just before, is the more exact beginning.
	if seen, err := r.watch(r.r).Look(ctx); err == nil {
		r.want.Before = seen
	}
	if written || r.want.Before.Replacement == r.r.id {
		// After a run that was cut short the kubelet may run it or not, and may not have read what was written last.
		r.want.Changed, r.want.Uncertain, r.want.Settle = false, true, backSettle
	}
	if written {
		return nil
	}
	r.swapped = true
	return r.swapper(r.r.single).Swap(r.r.Layout.Manifest, r.r.Old.Data, r.r.New)
}

func (r *replacing) waitRunning(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	r.ran, err = r.watch(r.r).Wait(ctx, r.want)
	return r.remember(err)
}

// remember keeps of an error what the way back has to know.
func (r *replacing) remember(err error) error {
	var away *staticpod.APIAwayError
	r.apiAway = errors.As(err, &away)
	var failed *staticpod.NotRunningError
	if errors.As(err, &failed) && failed.Container != "" {
		r.ran = &staticpod.Ran{Seen: staticpod.Seen{ContainerID: failed.Container}}
	}
	return err
}

func (r *replacing) verify(ctx context.Context) error {
	return r.Verify(ctx, r.r, !r.ran.Leads && r.r.elects)
}

func (r *replacing) stay(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.o.Timeout+r.o.Steady)
	defer cancel()
	return r.remember(r.watch(r.r).Stay(ctx, r.want, r.ran, r.o.Steady))
}

func (r *replacing) outcome() *Outcome {
	return &Outcome{
		Node: r.r.Node, Image: r.r.Image, Backup: r.backup.Dir(), Changed: r.swapped,
		SecondsWithout: r.ran.Without.Seconds(), Leads: r.ran.Leads,
	}
}

// explain says in what state a failed run left the node.
func (r *replacing) explain(err error) error {
	err = fmt.Errorf("replace the default scheduler: %w", err)
	switch {
	case errors.Is(err, steps.ErrUndo):
		return problem.WithHint(err, "what was before could not be brought back; `pmk-sched restore` tries again, and the README in "+r.backup.Dir()+" tells how by hand")
	case r.backup != nil && r.backup.State == staticpod.Replaced:
		return problem.WithHint(err, "the new scheduler itself runs and was proven; replace again to finish")
	case r.swapped:
		return problem.WithHint(err, "the manifest from before is back, and its scheduler is ready")
	default:
		return err
	}
}
