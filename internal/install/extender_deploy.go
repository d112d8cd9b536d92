package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/internal/apply"
	"github.com/pmk-sched/pmk-sched/internal/manifest"
	"github.com/pmk-sched/pmk-sched/versions"
)

// ExtenderDeployment is one extender on its way into a cluster, with who is to call it.
type ExtenderDeployment struct {
	Options ExtenderOptions
	// Release is that of the API server.
	Release versions.Release
	// For are schedulers to wire it into; those that call it already stay wired in any case.
	For []SchedulerRef
	// Except is a scheduler that Then deploys, with the extender.
	Except SchedulerRef
	// Then, where set, makes others call it when those have been wired: the default scheduler of this node, or one that is deployed with it. It undoes
	// what it did when it fails.
	Then func(ctx context.Context, w manifest.Wiring) error
	DeployOptions
}

// ExtenderOutcome is what was done.
type ExtenderOutcome struct {
	Extender string `json:"extender"`
	// Revision of the extender; 0 where it has no pods of its own.
	Revision int `json:"revision,omitempty"`
	// Address is what schedulers were told.
	Address string `json:"address"`
	// Schedulers that call it.
	Schedulers []string        `json:"schedulers"`
	Changes    apply.ChangeSet `json:"changes"`
}

// DeployExtender deploys an extender, waits until it is steady, and wires it into schedulers, one after the other. When it fails the state
// from before is back: of the extender and of each scheduler.
func DeployExtender(ctx context.Context, d Deps, x ExtenderDeployment) (*ExtenderOutcome, error) {
	name := x.Options.Call.Name
	out := &ExtenderOutcome{Extender: name, Schedulers: []string{}}
	if _, err := x.Options.check(x.Release); err != nil {
		return nil, err
	}
	run := &extending{Deps: d, x: x, out: out}
	steps := []step{{name: "look at extender " + name, do: run.look}}
	if x.Options.Sidecar {
		steps = append(steps, step{name: "wire extender " + name, do: run.sidecar})
	} else {
		steps = append(steps, step{name: "deploy extender " + name, do: run.deploy, undo: run.back}, step{name: "wire extender " + name, do: run.wire, undo: run.unwire})
	}
	if err := runSteps(ctx, steps, nil); err != nil {
		return nil, fmt.Errorf("deploy extender %s: %w", name, err)
	}
	return out, nil
}

// extending is one run of DeployExtender.
type extending struct {
	Deps
	x   ExtenderDeployment
	out *ExtenderOutcome

	wired    map[SchedulerRef]manifest.Wiring // before
	previous *apply.Revision
	plan     *Plan
	wiring   manifest.Wiring
	done     []*apply.Revision // of schedulers, before they were changed
}

func (e *extending) namespace() string { return cmp.Or(e.x.Options.Namespace, defaultNamespace) }

// look sees who calls it, and that nobody is asked to call what it could not.
func (e *extending) look(ctx context.Context) (err error) {
	o := e.x.Options
	if e.wired, err = callers(ctx, e.Deps, o.Call.Name); err != nil {
		return err
	}
	if o.Sidecar && len(e.x.For)+len(e.wired) == 0 && e.x.Then == nil {
		return invalidf("name it with --for", "in which scheduler's pod is extender %s to run?", o.Call.Name)
	}
	for _, target := range e.targets() {
		if w, wired := e.wired[target]; wired && (w.Sidecar != nil) != o.Sidecar {
			return invalidf("uninstall it first: `pmk-sched extender uninstall --name "+o.Call.Name+"`", "scheduler %s calls extender %s in the other form", target, o.Call.Name)
		}
		if o.Call.BindVerb != "" && !o.Sidecar && target.Namespace != e.namespace() {
			return invalidf("use -n "+target.Namespace, "scheduler %s has no access to the client certificate of extender %s in namespace %s", target, o.Call.Name, e.namespace())
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
func lastOf(ctx context.Context, d Deps, ref SchedulerRef) (*apply.Revision, error) {
	revisions, err := d.Ledger.Revisions(ctx, ref.Namespace, ref.Name)
	if err != nil {
		return nil, err
	}
	last := apply.LastDeployed(revisions)
	if last == nil {
		return nil, invalidf("deploy it first: `pmk-sched deploy --name "+ref.Name+"`", "no scheduler %s was deployed in namespace %s", ref.Name, ref.Namespace)
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
	if e.plan, err = NewExtenderPlan(e.x.Release, live, e.x.Options); err != nil {
		return err
	}
	e.tell(e.plan)
	revisions, err := e.Ledger.Revisions(ctx, e.namespace(), name)
	if err != nil {
		return err
	}
	e.previous = apply.LastDeployed(revisions)
	outcome, err := Deploy(ctx, e.Deps, e.plan, e.x.DeployOptions)
	if err != nil {
		e.plan = nil // it has undone itself
		return err
	}
	e.out.Revision, e.out.Changes = outcome.Revision, outcome.Changes
	return nil
}

func (e *extending) tell(plan *Plan) {
	for _, w := range plan.Warnings {
		e.warn("%s", w)
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
		_, err := Uninstall(ctx, e.Deps, e.plan.Namespace, e.plan.Name)
		return err
	case e.previous.Number == e.out.Revision:
		return nil
	}
	former, err := planOf(e.previous)
	if err != nil {
		return err
	}
	_, err = Deploy(ctx, e.Deps, former, e.x.DeployOptions)
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
		plan, err := wirePlan(last, []manifest.Wiring{w}, nil)
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
func (e *extending) rollOut(ctx context.Context, plan *Plan, last *apply.Revision) (bool, error) {
	if sameObjects(plan.Objects, last.Objects) {
		return false, nil
	}
	e.tell(plan)
	outcome, err := Deploy(ctx, e.Deps, plan, e.x.DeployOptions)
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
		plan, err := planOf(last)
		if err == nil {
			plan.Scheduler.Configuration = nil
			_, err = Deploy(ctx, e.Deps, plan, e.x.DeployOptions)
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// appOf says what the owned objects are: a scheduler's or an extender's; "" where nothing tells.
func appOf(owned []*unstructured.Unstructured) string {
	for _, o := range owned {
		if app := o.GetLabels()[manifest.LabelName]; app != "" && o.GetKind() != "Namespace" {
			return app
		}
	}
	return ""
}

// app is the value of the label that says what the plan's objects are.
func (p *Plan) app() string {
	if p.Extender != nil {
		return manifest.ExtenderAppName
	}
	return manifest.AppName
}
