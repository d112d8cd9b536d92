//go:build linux

package extender_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/extenders"
)

// operation is a command that changes the scheduler sched.
type operation struct {
	name string
	run  func(ctx context.Context, d deploy.Deps) error
	// calls are the extenders that a scheduler with the extender first calls afterwards.
	calls []string
}

// operations returns a deployment of the scheduler, which has another image each time, and changes
// of its extenders.
func (w *world) operations(t *testing.T) (deployScheduler operation, extender []operation) {
	image := 1
	deployScheduler = operation{"deploy", func(ctx context.Context, d deploy.Deps) error {
		image++
		s := w.schedulerDeployment("sched", v1alpha1.CustomSchedulerSpec{Credentials: deploy.CredentialsServiceAccount})
		s.Image = fmt.Sprintf("localhost/scheduler:v%d", image)
		_, _, err := extenders.DeployScheduler(ctx, d, s)
		return err
	}, []string{"first"}}
	for _, name := range []string{"second", "third"} {
		extender = append(extender, operation{"extender deploy " + name, func(ctx context.Context, d deploy.Deps) error {
			_, err := extenders.Deploy(ctx, d, w.deployment(t, w.options(name), "sched"))
			return err
		}, []string{"first", name}})
	}
	return deployScheduler, append(extender,
		operation{"extender uninstall first", func(ctx context.Context, d deploy.Deps) error {
			_, err := extenders.Uninstall(ctx, d, extenders.UninstallOptions{Name: "first", Namespace: w.ns})
			return err
		}, []string{}})
}

// A run that was planned before another one changed the scheduler is refused, with the reason:
// nothing of either is lost.
func TestTwoRunsAtOnceThatDeployAScheduler(t *testing.T) {
	w := newWorld(t)
	w.removeInTheEnd(t, "sched")
	deployScheduler, _ := w.operations(t)
	deployScheduler.calls = []string{} // there is no extender
	w.atOnce(t, deployScheduler, deployScheduler)
}

// atOnce runs early after late has read the state that it changes, and expects that late is
// refused.
func (w *world) atOnce(t *testing.T, early, late operation) {
	t.Helper()
	name, done, d := early.name+" while "+late.name+" runs", false, w.deps
	d.Preflight = func(ctx context.Context, plan *deploy.Plan) error {
		if plan.Name != "sched" || done {
			return nil
		}
		done = true
		if err := early.run(ctx, w.deps); err != nil {
			t.Errorf("%s: the first run: %v", name, err)
		}
		return nil
	}
	err := late.run(t.Context(), d)
	if !done {
		t.Fatalf("%s: the first run did not run: %v", name, err)
	}
	if err == nil || !strings.Contains(err.Error(), "another run") ||
		!slices.Contains(problem.Hints(err), "run the command again") {
		t.Errorf("%s: the second run: %v", name, err)
	}
	calls := []string{}
	for _, wiring := range w.wired(t, "sched") {
		calls = append(calls, wiring.Name)
	}
	slices.Sort(calls)
	if diff := cmp.Diff(early.calls, calls); diff != "" {
		t.Errorf("%s: extenders that the scheduler calls (-want +got):\n%s", name, diff)
	}
}
