//go:build linux && cases

package extender_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/deploy/extenders"
)

func TestTwoRunsAtOnceThatChangeAScheduler(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"first", "second", "third"} {
		w.removeInTheEnd(t, name)
	}
	w.scheduler(t, "sched")
	w.deploy(t, w.deployment(t, w.options("first"), "sched"))
	deployScheduler, wire := w.operations(t)
	all := append(wire, deployScheduler)
	for _, late := range all {
		for _, early := range all {
			if late.name == early.name && late.name != "deploy" {
				continue // the same objects: applying them twice loses nothing
			}
			w.atOnce(t, early, late)
			if t.Failed() {
				return
			}
			w.reset(t)
		}
	}
}

// reset returns to a scheduler that calls the extender first only.
func (w *world) reset(t *testing.T) {
	t.Helper()
	for _, name := range []string{"second", "third"} {
		if _, err := extenders.Uninstall(t.Context(), w.deps,
			extenders.UninstallOptions{Name: name, Namespace: w.ns}); err != nil {
			t.Fatal(err)
		}
	}
	w.deploy(t, w.deployment(t, w.options("first"), "sched"))
	if diff := cmp.Diff(1, len(w.wired(t, "sched"))); diff != "" {
		t.Fatalf("extenders after a reset (-want +got):\n%s", diff)
	}
}

// deploy deploys an extender.
func (w *world) deploy(t *testing.T, x extenders.Deployment) {
	t.Helper()
	if _, err := extenders.Deploy(t.Context(), w.deps, x); err != nil {
		t.Fatal(err)
	}
}
