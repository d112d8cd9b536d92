//go:build linux && cases

package extender_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/steps"
	"github.com/pmk-sched/pmk-sched/internal/deploy/extenders"
)

// names of the schedulers that call the extender.
var names = []string{"one", "three", "two"}

// wiredThenFailing returns a deployment of the extender for three schedulers that fails after the
// schedulers call it. failed is called then.
func (w *world) wiredThenFailing(t *testing.T, failed func()) extenders.Deployment {
	t.Helper()
	for _, name := range names {
		w.scheduler(t, name)
	}
	x := w.deployment(t, w.options("ext"), names...)
	x.Options.Nodes = []string{"a-node"}
	x.Then = func(context.Context, v1alpha1.Extender) error {
		for _, name := range names {
			if !w.callsExtender(t, name) {
				t.Errorf("scheduler %s does not call the extender", name)
			}
		}
		failed()
		return errors.New("the extender is not reached")
	}
	return x
}

func (w *world) callsExtender(t *testing.T, scheduler string) bool {
	t.Helper()
	return strings.Contains(w.configuration(t, scheduler), "urlPrefix: ")
}

// A scheduler that becomes stable slowly does not delay the former configuration of another one.
func TestUndoRestoresAllSchedulersBeforeItWaitsForOne(t *testing.T) {
	w := newWorld(t)
	x := w.wiredThenFailing(t, func() {
		w.client.wait = func(ctx context.Context, _ string) error {
			return wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(context.Context) (bool, error) {
				return !slices.ContainsFunc(names, func(name string) bool { return w.callsExtender(t, name) }), nil
			})
		}
	})
	x.Timeout = time.Minute
	_, err := extenders.Deploy(t.Context(), w.deps, x)
	if err == nil || strings.Contains(err.Error(), "could not be restored") {
		t.Fatalf("error is %v", err)
	}
	if left := w.state(t, "ext"); len(left) > 0 {
		t.Errorf("left of the extender: %v", left)
	}
}

// An extender is not removed while a scheduler may still call it: without ignorable, that scheduler
// would schedule nothing.
func TestUndoKeepsAnExtenderThatASchedulerStillCalls(t *testing.T) {
	w := newWorld(t)
	x := w.wiredThenFailing(t, func() {
		w.client.wait = func(ctx context.Context, name string) error {
			if name != "two" {
				return nil
			}
			<-ctx.Done()
			return context.Cause(ctx)
		}
	})
	x.Timeout = time.Second
	_, err := extenders.Deploy(t.Context(), w.deps, x)
	if err == nil {
		t.Fatal("no error")
	}
	if len(w.state(t, "ext")) == 0 {
		t.Error("the extender is removed")
	}
	for _, name := range names {
		if w.callsExtender(t, name) {
			t.Errorf("the former configuration of scheduler %s is not restored", name)
		}
	}
	if want := "extender ext stays: it is still called by " + w.ns + "/two\n"; !strings.Contains(err.Error()+"\n", want) {
		t.Errorf("error lacks %q: %v", want, err)
	}
	command := "`pmk-sched -n " + w.ns + " extender uninstall --name ext`"
	if hints := strings.Join(problem.Hints(err), "\n"); !strings.Contains(hints, command) {
		t.Errorf("hints lack %q: %s", command, hints)
	}

	w.client.wait = nil
	if _, err := extenders.Uninstall(t.Context(), w.deps,
		extenders.UninstallOptions{Name: "ext", Namespace: w.ns, Node: "a-node",
			LeaveDefault: func(context.Context) error { return nil }}); err != nil {
		t.Fatal(err)
	}
	if left := w.state(t, "ext"); len(left) > 0 {
		t.Errorf("left of the extender: %v", left)
	}
}

// The default scheduler is changed last, so that no later failure removes the extender under it.
func TestUndoKeepsAnExtenderThatTheDefaultSchedulerMayStillCall(t *testing.T) {
	w := newWorld(t)
	x := w.deployment(t, w.options("ext"))
	x.Options.Nodes = []string{"a-node"}
	x.Then = func(context.Context, v1alpha1.Extender) error { return fmt.Errorf("%w: no such file", steps.ErrUndo) }
	_, err := extenders.Deploy(t.Context(), w.deps, x)
	if err == nil || len(w.state(t, "ext")) == 0 {
		t.Errorf("the extender is removed under the default scheduler: %v", err)
	}
	if want := "extender ext stays: a scheduler that could not be restored may still call it"; err != nil &&
		!strings.Contains(err.Error(), want) {
		t.Errorf("error lacks %q: %v", want, err)
	}
}
