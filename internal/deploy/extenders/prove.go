package extenders

import (
	"context"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/internal/deploy/verify"
)

// proofTime is the time that a scheduler may take to call an extender for a new pod.
const proofTime = 30 * time.Second

// Prove returns an error if the scheduler does not reach the extender, whose pods are in the
// namespace. Without d.Config nothing is proven.
func Prove(ctx context.Context, d deploy.Deps, caller SchedulerRef, w manifest.Wiring, namespace string) error {
	if d.Config == nil {
		return nil
	}
	call := w.Extender.WithDefaults()
	o := verify.ExtenderOptions{
		Options:  verify.Options{Name: caller.Name, Namespace: caller.Namespace, Timeout: proofTime, Log: d.Log},
		Extender: call.Name, ExtenderNamespace: namespace, Port: manifest.ExtenderPort, URL: call.URLPrefix,
		Filters: call.FilterVerb != "", Required: call.Ignorable == nil || !*call.Ignorable,
	}
	if d.Owner != "" {
		o.In = caller.Namespace // the controller may not create namespaces
	}
	for _, r := range call.ManagedResources {
		o.Resources = append(o.Resources, r.Name)
	}
	done := d.OnStep("prove that scheduler " + caller.Name + " calls extender " + call.Name)
	unknown, err := verify.Extender(ctx, d.Config, o)
	if unknown != "" {
		d.Warnf("whether scheduler %s reaches extender %s is not proven: %s", caller.Name, call.Name, unknown)
	}
	done(err)
	return err
}

// prove proves that every scheduler that was wired reaches the extender.
func (e *extenderRun) prove(ctx context.Context) error {
	for _, target := range e.targets() {
		if err := e.proveFor(ctx, target); err != nil {
			return err
		}
	}
	return nil
}

// proveFor proves that one scheduler reaches the extender.
func (e *extenderRun) proveFor(ctx context.Context, target SchedulerRef) error {
	w, err := deploy.WiringOf(e.entryIn(target.Namespace))
	if err != nil {
		return err
	}
	return Prove(ctx, e.Deps, target, w, e.namespace())
}
