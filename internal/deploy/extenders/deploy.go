// Package extenders deploys scheduler extenders, wires them into schedulers, restarts and
// uninstalls them.
package extenders

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/steps"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Deployment is one extender to deploy, and the schedulers that call it.
type Deployment struct {
	Options Options
	// Release of the API server.
	Release versions.Release
	// For are schedulers to wire it into. Schedulers that call it already stay wired in any case.
	For []SchedulerRef
	// Then, if set, makes this node's default scheduler call it, after the others are proven to call
	// it. It undoes its changes when it fails, and returns [steps.ErrUndo] if it cannot.
	Then func(ctx context.Context, entry v1alpha1.Extender) error
	deploy.RunOptions
	// except is a scheduler that is deployed with the extender, and not wired here.
	except SchedulerRef
}

// Outcome is the result of Deploy or Restart.
type Outcome struct {
	Extender string `json:"extender"`
	// Revision of the extender. It is 0 for a sidecar.
	Revision int `json:"revision,omitempty"`
	// Address at which schedulers call it.
	Address string `json:"address"`
	// Schedulers that call it.
	Schedulers []string        `json:"schedulers"`
	Changes    apply.ChangeSet `json:"changes"`
}

// Deploy deploys an extender, waits until it is stable, and wires it into schedulers, one after the
// other. If anything fails, the former state of the extender and each scheduler is restored.
func Deploy(ctx context.Context, d deploy.Deps, x Deployment) (*Outcome, error) {
	run, err := newRun(d, x)
	if err != nil {
		return nil, err
	}
	if err := steps.Run(ctx, run.steps(), nil); err != nil {
		return nil, fmt.Errorf("deploy extender %s: %w", run.name(), err)
	}
	return run.out, nil
}

// extenderRun is one deployment of an extender.
type extenderRun struct {
	deploy.Deps
	x   Deployment
	out *Outcome

	wired    map[SchedulerRef]v1alpha1.Extender // before
	previous *apply.Revision
	plan     *deploy.Plan
	deployed *deploy.Outcome   // nil while the extender is as before
	entry    v1alpha1.Extender // as schedulers call it
	changed  []change
}

// change is a scheduler that was wired: its revision before, and what the run deployed.
type change struct {
	before   *apply.Revision
	deployed *deploy.Outcome
}

func newRun(d deploy.Deps, x Deployment) (*extenderRun, error) {
	x.Options.Namespace = cmp.Or(x.Options.Namespace, metav1.NamespaceSystem)
	if _, err := x.Options.check(x.Release); err != nil {
		return nil, err
	}
	return &extenderRun{Deps: d, x: x, out: &Outcome{Extender: x.Options.Name, Schedulers: []string{}}}, nil
}

func (e *extenderRun) name() string      { return e.x.Options.Name }
func (e *extenderRun) namespace() string { return e.x.Options.Namespace }

func (e *extenderRun) steps() []steps.Step {
	list := []steps.Step{{Name: "inspect extender " + e.name(), Do: e.inspect}}
	wire := steps.Step{Name: "wire extender " + e.name(), Do: e.wire, Undo: e.unwire, UndoTimeout: e.x.UndoTimeout()}
	if e.x.Options.Sidecar {
		list = append(list, wire)
	} else {
		list = append(list,
			steps.Step{Name: "deploy extender " + e.name(), Do: e.deploy, Undo: e.restore, UndoTimeout: e.x.UndoTimeout()},
			wire,
			steps.Step{Name: "prove that extender " + e.name() + " is called", Do: e.prove})
	}
	if e.x.Then != nil { // last: it undoes only its own failure
		list = append(list, steps.Step{Name: "wire extender " + e.name() + " into the default scheduler", Do: e.then})
	}
	return list
}

// inspect finds the schedulers that call it, and checks that the schedulers to wire can call it.
func (e *extenderRun) inspect(ctx context.Context) (err error) {
	o := e.x.Options
	if e.wired, err = callers(ctx, e.Deps, e.namespace(), o.Name); err != nil {
		return err
	}
	if o.Sidecar && len(e.x.For)+len(e.wired) == 0 && e.x.Then == nil && e.x.except == (SchedulerRef{}) {
		return problem.Invalidf("name a scheduler with --for", "extender %s is a sidecar, and no scheduler calls it",
			o.Name)
	}
	for _, target := range e.targets() {
		if w, wired := e.wired[target]; wired && w.Sidecar != o.Sidecar {
			return problem.Invalidf("uninstall it first: `pmk-sched extender uninstall --name "+o.Name+"`",
				"scheduler %s calls extender %s in the other form, sidecar or Service", target, o.Name)
		}
		if o.BindVerb != "" && !o.Sidecar && target.Namespace != e.namespace() {
			return problem.Invalidf("use -n "+target.Namespace,
				"scheduler %s has no access to the client certificate of extender %s in namespace %s", target, o.Name,
				e.namespace())
		}
		if e.x.Options.Image, err = signedFor(ctx, e.Deps, target, e.x.Options.Image); err != nil {
			return err
		}
	}
	return nil
}

// signedFor verifies that the key that a deployed scheduler requires, if any, signed the image of
// an extender that it calls, and returns the image's name with the digest.
func signedFor(ctx context.Context, d deploy.Deps, scheduler SchedulerRef, image string) (string, error) {
	last, err := lastOf(ctx, d, scheduler)
	if err != nil {
		return image, err
	}
	key, err := deploy.RequiredKey(last)
	if err != nil || key == "" {
		return image, err
	}
	if image, err = d.Signed(ctx, pack.SignatureRequest{Reference: image, Key: key}); err != nil {
		return image, fmt.Errorf("verify the image for scheduler %s: %w", scheduler, err)
	}
	return image, nil
}

// targets returns the schedulers to wire, each once, in order.
func (e *extenderRun) targets() []SchedulerRef {
	all := slices.AppendSeq(slices.Clone(e.x.For), maps.Keys(e.wired))
	all = slices.DeleteFunc(all, func(r SchedulerRef) bool { return r == e.x.except })
	slices.SortFunc(all, func(a, b SchedulerRef) int { return cmp.Compare(a.String(), b.String()) })
	return slices.Compact(all)
}

// lastOf returns the last deployed revision of a scheduler or extender.
func lastOf(ctx context.Context, d deploy.Deps, ref SchedulerRef) (*apply.Revision, error) {
	last, err := d.Cluster.LastDeployed(ctx, ref.Namespace, ref.Name)
	if err != nil {
		return nil, err
	}
	if last == nil {
		return nil, problem.Invalidf("deploy it first: `pmk-sched deploy --name "+ref.Name+"`",
			"scheduler %s is not deployed in namespace %s", ref.Name, ref.Namespace)
	}
	return last, nil
}

// deploy deploys the extender itself.
func (e *extenderRun) deploy(ctx context.Context) error {
	if err := e.planExtender(ctx); err != nil {
		return err
	}
	e.Report(e.plan)
	outcome, err := deploy.Deploy(ctx, e.Deps, e.plan, e.x.RunOptions)
	if err != nil {
		return err // it has undone itself
	}
	e.deployed = outcome
	e.out.Revision, e.out.Changes = outcome.Revision, outcome.Changes
	return nil
}

// wire makes the schedulers call the extender.
func (e *extenderRun) wire(ctx context.Context) error {
	if err := e.x.Options.MissingImage; err != nil {
		return err
	}
	if err := e.planWiring(ctx); err != nil {
		return err
	}
	return e.rewire(ctx)
}

func (e *extenderRun) then(ctx context.Context) error {
	for _, node := range e.x.Options.Nodes {
		e.out.Schedulers = append(e.out.Schedulers, "the default scheduler of node "+node)
	}
	return e.x.Then(ctx, e.entry)
}

// rewire deploys each scheduler with the extender, unless it is up to date.
func (e *extenderRun) rewire(ctx context.Context) error {
	e.out.Address = e.entry.Deployed.URLPrefix
	for _, target := range e.targets() {
		plan, last, err := e.planTarget(ctx, target)
		if err != nil {
			return err
		}
		if err := e.rollOut(ctx, plan, last); err != nil {
			return err
		}
		e.out.Schedulers = append(e.out.Schedulers, target.String())
		for _, placed := range plan.Scheduler.Wirings {
			if placed.Extender.Name == e.name() {
				e.out.Address = placed.Extender.URLPrefix
			}
		}
	}
	return nil
}

// entryIn returns the extender's entry for a scheduler in a namespace: with the client certificate
// where the scheduler has access to the Secret.
func (e *extenderRun) entryIn(namespace string) v1alpha1.Extender {
	if e.entry.Sidecar || namespace != e.namespace() {
		return e.entry
	}
	return withClientCertificate(e.entry)
}

// anonymous returns the reason why a scheduler that calls the extender cannot present a client
// certificate, or "". live are the extender's objects in the cluster.
func (e *extenderRun) anonymous(live []*unstructured.Unstructured) string {
	if len(NodesCalling(live))+len(e.x.Options.Nodes) > 0 {
		return "the default scheduler, which calls it, has none"
	}
	for _, target := range e.targets() {
		if target.Namespace != e.namespace() {
			return fmt.Sprintf("scheduler %s, which calls it, has no access to the Secret with its own in namespace %s", target,
				e.namespace())
		}
	}
	for _, target := range sortedRefs(e.wired) {
		if e.wired[target].Deployed.ClientSecret == "" {
			return fmt.Sprintf(
				"scheduler %s, which calls it, presents one from now on; deploy the extender once more to require it", target)
		}
	}
	return ""
}

// rollOut deploys a scheduler unless it is up to date.
func (e *extenderRun) rollOut(ctx context.Context, plan *deploy.Plan, last *apply.Revision) error {
	if deploy.SameObjects(plan.Objects, last.Objects) {
		return nil
	}
	e.Report(plan)
	outcome, err := deploy.Deploy(ctx, e.Deps, plan, e.x.RunOptions)
	if err != nil {
		return err
	}
	e.out.Changes = append(e.out.Changes, outcome.Changes...)
	e.changed = append(e.changed, change{before: last, deployed: outcome})
	return nil
}
