package extenders

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/apply"
	"github.com/pmk-sched/pmk-sched/internal/install"
	"github.com/pmk-sched/pmk-sched/internal/manifest"
	"github.com/pmk-sched/pmk-sched/internal/problem"
	"github.com/pmk-sched/pmk-sched/internal/steps"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Deployment is one extender on its way into a cluster, with who is to call it.
type Deployment struct {
	Options Options
	// Release is that of the API server.
	Release versions.Release
	// For are schedulers to wire it into; those that call it already stay wired in any case.
	For []SchedulerRef
	// Except is a scheduler that Then deploys, with the extender.
	Except SchedulerRef
	// Then, where set, makes others call it when those have been wired: the default scheduler of this node, or one that is deployed with it. It undoes
	// what it did when it fails.
	Then func(ctx context.Context, w manifest.Wiring) error
	install.DeployOptions
}

// Outcome is what was done.
type Outcome struct {
	Extender string `json:"extender"`
	// Revision of the extender; 0 where it has no pods of its own.
	Revision int `json:"revision,omitempty"`
	// Address is what schedulers were told.
	Address string `json:"address"`
	// Schedulers that call it.
	Schedulers []string        `json:"schedulers"`
	Changes    apply.ChangeSet `json:"changes"`
}

// Deploy deploys an extender, waits until it is steady, and wires it into schedulers, one after the other. When it fails the state
// from before is back: of the extender and of each scheduler.
func Deploy(ctx context.Context, d install.Deps, x Deployment) (*Outcome, error) {
	name := x.Options.Call.Name
	out := &Outcome{Extender: name, Schedulers: []string{}}
	if _, err := x.Options.check(x.Release); err != nil {
		return nil, err
	}
	run := &extending{Deps: d, x: x, out: out}
	list := []steps.Step{{Name: "look at extender " + name, Do: run.look}}
	if x.Options.Sidecar {
		list = append(list, steps.Step{Name: "wire extender " + name, Do: run.sidecar})
	} else {
		list = append(list, steps.Step{Name: "deploy extender " + name, Do: run.deploy, Undo: run.back}, steps.Step{Name: "wire extender " + name, Do: run.wire, Undo: run.unwire})
	}
	if err := steps.Run(ctx, list, nil); err != nil {
		return nil, fmt.Errorf("deploy extender %s: %w", name, err)
	}
	return out, nil
}

// extending is one run of Deploy.
type extending struct {
	install.Deps
	x   Deployment
	out *Outcome

	wired    map[SchedulerRef]manifest.Wiring // before
	previous *apply.Revision
	plan     *install.Plan
	wiring   manifest.Wiring
	done     []*apply.Revision // of schedulers, before they were changed
}

func (e *extending) namespace() string { return cmp.Or(e.x.Options.Namespace, metav1.NamespaceSystem) }

// look sees who calls it, and that nobody is asked to call what it could not.
func (e *extending) look(ctx context.Context) (err error) {
	o := e.x.Options
	if e.wired, err = callers(ctx, e.Deps, o.Call.Name); err != nil {
		return err
	}
	if o.Sidecar && len(e.x.For)+len(e.wired) == 0 && e.x.Then == nil {
		return problem.Invalidf("name it with --for", "in which scheduler's pod is extender %s to run?", o.Call.Name)
	}
	for _, target := range e.targets() {
		if w, wired := e.wired[target]; wired && (w.Sidecar != nil) != o.Sidecar {
			return problem.Invalidf("uninstall it first: `pmk-sched extender uninstall --name "+o.Call.Name+"`", "scheduler %s calls extender %s in the other form", target, o.Call.Name)
		}
		if o.Call.BindVerb != "" && !o.Sidecar && target.Namespace != e.namespace() {
			return problem.Invalidf("use -n "+target.Namespace, "scheduler %s has no access to the client certificate of extender %s in namespace %s", target, o.Call.Name, e.namespace())
		}
		if _, err := lastOf(ctx, e.Deps, target); err != nil {
			return err
		}
	}
	return nil
}

// targets are the schedulers to wire, each once, in order.
func (e *extending) targets() []SchedulerRef {
	all := slices.AppendSeq(slices.Clone(e.x.For), maps.Keys(e.wired))
	all = slices.DeleteFunc(all, func(r SchedulerRef) bool { return r == e.x.Except })
	slices.SortFunc(all, func(a, b SchedulerRef) int { return cmp.Compare(a.String(), b.String()) })
	return slices.Compact(all)
}

// lastOf is a scheduler as it was deployed last.
func lastOf(ctx context.Context, d install.Deps, ref SchedulerRef) (*apply.Revision, error) {
	revisions, err := d.Ledger.Revisions(ctx, ref.Namespace, ref.Name)
	if err != nil {
		return nil, err
	}
	last := apply.LastDeployed(revisions)
	if last == nil {
		return nil, problem.Invalidf("deploy it first: `pmk-sched deploy --name "+ref.Name+"`", "no scheduler %s was deployed in namespace %s", ref.Name, ref.Namespace)
	}
	return last, nil
}

// deploy puts the extender itself into the cluster.
func (e *extending) deploy(ctx context.Context) error {
	name := e.x.Options.Call.Name
	live, err := e.Applier.Owned(ctx, name, e.namespace())
	if err != nil {
		return err
	}
	if e.plan, err = newPlan(e.x.Release, live, e.x.Options); err != nil {
		return err
	}
	e.tell(e.plan)
	revisions, err := e.Ledger.Revisions(ctx, e.namespace(), name)
	if err != nil {
		return err
	}
	e.previous = apply.LastDeployed(revisions)
	outcome, err := install.Deploy(ctx, e.Deps, e.plan, e.x.DeployOptions)
	if err != nil {
		e.plan = nil // it has undone itself
		return err
	}
	e.out.Revision, e.out.Changes = outcome.Revision, outcome.Changes
	return nil
}

func (e *extending) tell(plan *install.Plan) {
	for _, w := range plan.Warnings {
		e.Warnf("%s", w)
	}
	if e.Note == nil {
		return
	}
	for _, n := range plan.Notes {
		e.Note(n)
	}
}

// back brings back the extender from before, or removes it if there was none.
func (e *extending) back(ctx context.Context, _ error) error {
	switch {
	case e.plan == nil || e.x.NoRollback:
		return nil
	case e.previous == nil:
		_, err := install.Uninstall(ctx, e.Deps, e.plan.Namespace, e.plan.Name)
		return err
	case e.previous.Number == e.out.Revision:
		return nil
	}
	former, err := install.PlanOf(e.previous)
	if err != nil {
		return err
	}
	_, err = install.Deploy(ctx, e.Deps, former, e.x.DeployOptions)
	return err
}

// wire tells the schedulers where the extender is.
func (e *extending) wire(ctx context.Context) error {
	live, err := e.Applier.Owned(ctx, e.plan.Name, e.plan.Namespace)
	if err != nil {
		return err
	}
	e.wiring = serviceWiring(e.x.Options.Call, e.plan, live)
	if err := e.rewire(ctx); err != nil {
		return err
	}
	return e.then(ctx)
}

func (e *extending) then(ctx context.Context) error {
	if e.x.Then == nil {
		return nil
	}
	for _, node := range e.x.Options.Nodes {
		e.out.Schedulers = append(e.out.Schedulers, "the default scheduler of node "+node)
	}
	return e.x.Then(ctx, e.wiring)
}

func (e *extending) sidecar(ctx context.Context) (err error) {
	if e.wiring, err = e.x.Options.sidecarWiring(); err != nil {
		return err
	}
	err = e.rewire(ctx)
	if err == nil {
		err = e.then(ctx)
	}
	if err != nil {
		return errors.Join(err, e.unwire(ctx, err))
	}
	return nil
}

// rewire deploys each scheduler with the extender in its configuration, where that is not so already.
func (e *extending) rewire(ctx context.Context) error {
	e.out.Address = e.wiring.Extender.URLPrefix
	for _, target := range e.targets() {
		last, err := lastOf(ctx, e.Deps, target)
		if err != nil {
			return err
		}
		w := e.wiring
		before, was := e.wired[target]
		w.Alone = !was || before.Alone
		plan, err := install.Rewire(last, []manifest.Wiring{w}, nil)
		if err != nil {
			return err
		}
		changed, err := e.rollOut(ctx, plan, last)
		if err != nil {
			return err
		}
		if changed {
			e.done = append(e.done, last)
		}
		e.out.Schedulers = append(e.out.Schedulers, target.String())
		if placed, err := manifest.Wirings(plan.Objects); err == nil && e.wiring.Sidecar != nil {
			for _, p := range placed {
				if p.Extender.Name == w.Extender.Name {
					e.out.Address = p.Extender.URLPrefix
				}
			}
		}
	}
	return nil
}

// rollOut deploys a scheduler anew unless it is as planned already.
func (e *extending) rollOut(ctx context.Context, plan *install.Plan, last *apply.Revision) (bool, error) {
	if install.SameObjects(plan.Objects, last.Objects) {
		return false, nil
	}
	e.tell(plan)
	outcome, err := install.Deploy(ctx, e.Deps, plan, e.x.DeployOptions)
	if err != nil {
		return false, err
	}
	e.out.Changes = append(e.out.Changes, outcome.Changes...)
	return true, nil
}

// unwire brings the schedulers that were changed back to what they were.
func (e *extending) unwire(ctx context.Context, _ error) error {
	if e.x.NoRollback {
		return nil
	}
	var failed error
	for _, last := range slices.Backward(e.done) {
		plan, err := install.PlanOf(last)
		if err == nil {
			plan.Scheduler.Configuration = nil
			_, err = install.Deploy(ctx, e.Deps, plan, e.x.DeployOptions)
		}
		failed = errors.Join(failed, err)
	}
	return failed
}
