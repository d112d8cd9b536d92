package extenders

import (
	"context"
	"fmt"
	"slices"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/steps"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/versions"
)

// SchedulerDeployment is a second scheduler with the extenders that are deployed before it.
type SchedulerDeployment struct {
	// Request and Facts are the arguments of [deploy.NewPlan]. Extenders are its extenders that
	// pmk-sched deploys; their addresses are filled in.
	Request *v1alpha1.CustomScheduler
	deploy.Facts
	Extenders []Options
	// Former is the deployed state that is replaced. If it is nil, it is read from the cluster.
	Former *Former
	deploy.RunOptions
}

// Former is a scheduler's deployed state.
type Former struct {
	// Revision is nil if the scheduler is not deployed.
	Revision *apply.Revision
	// Extenders are those that pmk-sched deployed.
	Extenders []v1alpha1.Extender
}

// ReadFormer reads a scheduler's deployed state.
func ReadFormer(ctx context.Context, d deploy.Deps, namespace, name string) (*Former, error) {
	last, err := d.Cluster.LastDeployed(ctx, namespace, name)
	if err != nil || last == nil {
		return &Former{}, err
	}
	called, err := deploy.ExtendersOf(last)
	if err != nil {
		err = &unreadableError{err}
	}
	return &Former{Revision: last, Extenders: called}, err
}

// Images lists every image that the deployment leads to: the images of the scheduler, its
// extenders, and the sidecars that `extender deploy` added to the deployed scheduler and that stay
// in its pods. The images can be set.
func (s *SchedulerDeployment) Images() []*string {
	images := []*string{&s.Image}
	for i := range s.Extenders {
		images = append(images, &s.Extenders[i].Image)
	}
	if s.Former == nil {
		return images
	}
	for _, e := range s.Former.Extenders {
		if e.Deployed.Added && e.Sidecar && !hasExtender(s.Request.Spec.Extenders, e.Name) {
			images = append(images, &e.Deployed.Image)
		}
	}
	return images
}

// PlanScheduler returns the plan that DeployScheduler runs, with its extenders' plans in Before.
// Without d.Cluster no cluster is asked.
func PlanScheduler(ctx context.Context, d deploy.Deps, s SchedulerDeployment) (*deploy.Plan, error) {
	run, err := newSchedulerRun(ctx, d, s)
	if err != nil {
		return nil, err
	}
	var before []*deploy.Plan
	for _, extender := range run.extenders {
		plans, err := extender.plans(ctx)
		if err != nil {
			return nil, err
		}
		before = append(before, plans...)
	}
	if err := run.makePlan(); err != nil {
		return nil, err
	}
	run.plan.Before = before
	return run.plan, nil
}

// newSchedulerRun reads the current revision, which the plan replaces.
func newSchedulerRun(ctx context.Context, d deploy.Deps, s SchedulerDeployment) (run *schedulerRun, err error) {
	release, err := s.serverRelease()
	if err != nil {
		return nil, err
	}
	run = &schedulerRun{SchedulerDeployment: s, d: d}
	switch {
	case s.Former != nil:
	case d.Cluster == nil:
		run.Former = &Former{}
	default:
		if run.Former, err = ReadFormer(ctx, d, s.namespace(), s.Request.Name); err != nil {
			return nil, err
		}
	}
	if s.Replaces == 0 {
		run.Replaces = numberOf(run.Former.Revision)
	}
	for _, o := range s.Extenders {
		extender, err := newRun(d, s.deployment(o, release))
		if err != nil {
			return nil, err
		}
		run.extenders = append(run.extenders, extender)
	}
	return run, nil
}

// DeployScheduler deploys the extenders one after the other, then the scheduler that calls them. If
// anything fails, the former state of all of them is restored.
func DeployScheduler(ctx context.Context, d deploy.Deps, s SchedulerDeployment) (*deploy.Plan, *deploy.Outcome, error) {
	run, err := newSchedulerRun(ctx, d, s)
	if err != nil {
		return nil, nil, err
	}
	var list []steps.Step
	for _, extender := range run.extenders {
		list = append(list, extender.steps()...)
	}
	if len(list) == 0 {
		err = run.deploy(ctx)
	} else {
		err = steps.Run(ctx, append(list,
			steps.Step{Name: "deploy scheduler " + s.Request.Name, Do: run.deploy, Undo: run.undo,
				UndoTimeout: s.UndoTimeout()},
			steps.Step{Name: "prove that its extenders are called", Do: run.prove}), nil)
	}
	if err != nil {
		return nil, nil, err
	}
	return run.plan, run.outcome, nil
}

// namespace returns the scheduler's namespace.
func (s SchedulerDeployment) namespace() string {
	return deploy.NamespaceOf(s.Request)
}

// schedulerRun is one deployment of a scheduler, after its extenders.
type schedulerRun struct {
	SchedulerDeployment
	d         deploy.Deps
	extenders []*extenderRun
	plan      *deploy.Plan
	outcome   *deploy.Outcome
}

// makePlan plans the scheduler with the extenders, which are planned, and with those that `extender
// deploy` added to the former scheduler.
func (r *schedulerRun) makePlan() (err error) {
	request := r.Request.DeepCopy()
	list := &request.Spec.Extenders
	for _, extender := range r.extenders {
		entry := extender.entryIn(r.namespace())
		at := slices.IndexFunc(*list, func(e v1alpha1.Extender) bool { return e.Name == entry.Name })
		if at < 0 {
			at, *list = len(*list), append(*list, entry)
		}
		(*list)[at].Deployed = entry.Deployed
	}
	var left []string
	for _, e := range r.Former.Extenders {
		switch {
		case hasExtender(*list, e.Name):
		case e.Deployed.Added:
			*list = append(*list, e)
		case !e.Sidecar:
			left = append(left, fmt.Sprintf("scheduler %s does not call extender %[2]s any more; if no other scheduler "+
				"does, remove it with `pmk-sched extender uninstall --name %[2]s`", r.Request.Name, e.Name))
		}
	}
	if r.plan, err = deploy.NewPlan(request, r.Facts); err == nil {
		r.plan.Warnings = append(r.plan.Warnings, left...)
	}
	return err
}

func hasExtender(list []v1alpha1.Extender, name string) bool {
	return slices.ContainsFunc(list, func(e v1alpha1.Extender) bool { return e.Name == name })
}

func (r *schedulerRun) deploy(ctx context.Context) (err error) {
	if err := r.makePlan(); err != nil {
		return err
	}
	r.d.Report(r.plan)
	r.outcome, err = deploy.Deploy(ctx, r.d, r.plan, r.RunOptions)
	return err
}

// undo returns to the former scheduler if a later step failed; a deployment that failed has undone
// itself.
func (r *schedulerRun) undo(ctx context.Context, _ error) error {
	if r.outcome == nil {
		return nil
	}
	return goBack(ctx, r.d, r.plan, r.Former.Revision, r.outcome, r.RunOptions)
}

// prove proves that the scheduler reaches the extenders that were deployed with it.
func (r *schedulerRun) prove(ctx context.Context) error {
	for _, extender := range r.extenders {
		if extender.entry.Sidecar {
			continue
		}
		if err := extender.proveFor(ctx, SchedulerRef{r.plan.Namespace, r.plan.Name}); err != nil {
			return err
		}
	}
	return nil
}

// serverRelease returns the API server's release, or without a cluster the scheduler's release.
func (s SchedulerDeployment) serverRelease() (versions.Release, error) {
	if s.Cluster != nil {
		return s.Cluster.Release, nil
	}
	return s.Release()
}

// deployment returns the deployment for one extender. The scheduler itself is wired by its own
// plan.
func (s SchedulerDeployment) deployment(o Options, release versions.Release) Deployment {
	return Deployment{
		Options: o, Release: release, RunOptions: s.RunOptions,
		except: SchedulerRef{Namespace: s.namespace(), Name: s.Request.Name},
	}
}

// unreadableError is returned for a revision whose record cannot be read, also later.
type unreadableError struct{ error }

func (e *unreadableError) Unwrap() error { return e.error }

// numberOf returns the number of the revision that a plan replaces, or [deploy.NoRevision].
func numberOf(last *apply.Revision) int {
	if last == nil {
		return deploy.NoRevision
	}
	return last.Number
}
