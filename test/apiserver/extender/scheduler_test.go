//go:build linux

package extender_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/deploy/extenders"
)

// A file lists a scheduler with its extenders: deploy creates both or neither, changes nothing when
// it is run again, and warns about an extender that is not called any more.
func TestSchedulerIsDeployedWithItsExtenders(t *testing.T) {
	w := newWorld(t)
	w.removeInTheEnd(t, "sched")
	w.removeInTheEnd(t, "ext")
	var warnings []string
	w.deps.Warn = func(text string) { warnings = append(warnings, text) }
	request := w.schedulerDeployment("sched", binpacking)
	request.Extenders = []extenders.Options{w.options("ext")}

	w.client.fails = notStable{"sched", "localhost/scheduler"}
	if _, _, err := extenders.DeployScheduler(t.Context(), w.deps, request); err == nil {
		t.Fatal("no error for a scheduler that is not stable")
	}
	if left := w.state(t, "sched", "ext"); len(left) > 0 {
		t.Errorf("the failed deployment left %v", left)
	}

	w.client.fails = notStable{}
	if _, _, err := extenders.DeployScheduler(t.Context(), w.deps, request); err != nil {
		t.Fatal(err)
	}
	service, err := w.kube.CoreV1().Services(w.ns).Get(t.Context(), "ext", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	call := "urlPrefix: https://" + service.Spec.ClusterIP + "\n"
	if text := w.configuration(t, "sched"); !strings.Contains(text, call) {
		t.Errorf("the scheduler does not call the extender at %s:\n%s", service.Spec.ClusterIP, text)
	}
	deployed := w.state(t, "sched", "ext")
	if _, outcome, err := extenders.DeployScheduler(t.Context(), w.deps, request); err != nil ||
		outcome.Changes.Changed() {
		t.Errorf("the same again: %v, %v", outcome, err)
	}
	if diff := cmp.Diff(deployed, w.state(t, "sched", "ext")); diff != "" {
		t.Errorf("the same again changed (-before +after):\n%s", diff)
	}

	request.Extenders = nil
	if _, _, err := extenders.DeployScheduler(t.Context(), w.deps, request); err != nil {
		t.Fatal(err)
	}
	if text := w.configuration(t, "sched"); strings.Contains(text, call) {
		t.Errorf("the scheduler still calls the extender:\n%s", text)
	}
	if said := strings.Join(warnings, "\n"); !strings.Contains(said, "does not call extender ext any more") {
		t.Errorf("no warning about the extender that is left: %q", said)
	}
}
