//go:build linux

package extender_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/extenders"
	"github.com/pmk-sched/pmk-sched/versions"
)

// rollBack rolls sched back in a cluster of a release.
func (w *world) rollBack(t *testing.T, to int, server versions.Release) (*deploy.Outcome, []string, error) {
	t.Helper()
	var warnings []string
	deps := w.deps
	deps.Warn = func(text string) { warnings = append(warnings, text) }
	deps.By = "root@here"
	o := deploy.RollbackOptions{Name: "sched", Namespace: w.ns, To: to, Now: time.Now()}
	_, outcome, err := extenders.RollBack(t.Context(), deps, &inspect.Info{Release: server}, o, deploy.RunOptions{})
	return outcome, warnings, err
}

// inUse removes from a state the configurations that its Deployment does not mount: revisions hold
// them.
func inUse(t *testing.T, state map[string]any) map[string]any {
	t.Helper()
	deployment, err := json.Marshal(state["Deployment/sched"])
	if err != nil {
		t.Fatal(err)
	}
	for name := range state {
		if config, ok := strings.CutPrefix(name, "ConfigMap/"); ok &&
			!strings.Contains(string(deployment), strconv.Quote(config)) {
			delete(state, name)
		}
	}
	return state
}

func TestRollbackRestoresImageConfigurationPermissionsAndExtenders(t *testing.T) {
	w := newWorld(t)
	w.scheduler(t, "sched")
	first := inUse(t, w.state(t, "sched"))
	if _, err := extenders.Deploy(t.Context(), w.deps, w.deployment(t, w.options("ext"), "sched")); err != nil {
		t.Fatal(err)
	}
	second := inUse(t, w.state(t, "sched"))

	outcome, warnings, err := w.rollBack(t, 0, release)
	if err != nil || outcome.Revision != 3 {
		t.Fatalf("revision %+v, %v", outcome, err)
	}
	if diff := cmp.Diff(first, inUse(t, w.state(t, "sched"))); diff != "" {
		t.Errorf("not as in revision 1 (-want +got):\n%s", diff)
	}
	if slices.ContainsFunc(warnings, func(text string) bool { return strings.Contains(text, "deployed again") }) {
		t.Errorf("warnings %q", warnings)
	}

	if _, warnings, err = w.rollBack(t, 2, release); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(second, inUse(t, w.state(t, "sched"))); diff != "" {
		t.Errorf("not as in revision 2 (-want +got):\n%s", diff)
	}
	if slices.ContainsFunc(warnings, func(text string) bool { return strings.Contains(text, "deployed again") }) {
		t.Errorf("warnings %q", warnings)
	}
	revisions, err := w.deps.Ledger.Revisions(t.Context(), w.ns, "sched")
	if err != nil {
		t.Fatal(err)
	}
	history, err := deploy.History(t.Context(), revisions, w.deps.Ledger.ReadRevision)
	if err != nil {
		t.Fatal(err)
	}
	last := history[len(history)-1]
	if last.Origin != "rollback to revision 2" || last.By != "root@here" || !last.Current ||
		!slices.Equal(last.Extenders, []string{"ext"}) {
		t.Errorf("history %+v", history)
	}
}

// An extender that was uninstalled and deployed again has another authority and perhaps another
// address.
func TestRollbackCallsAnExtenderWhereItIsNow(t *testing.T) {
	w := newWorld(t)
	w.scheduler(t, "sched")
	if _, err := extenders.Deploy(t.Context(), w.deps, w.deployment(t, w.options("ext"), "sched")); err != nil {
		t.Fatal(err)
	}
	if _, err := extenders.Uninstall(t.Context(), w.deps,
		extenders.UninstallOptions{Name: "ext", Namespace: w.ns}); err != nil {
		t.Fatal(err)
	}
	before := inUse(t, w.state(t, "sched"))
	if _, _, err := w.rollBack(t, 2, release); err == nil ||
		!strings.Contains(err.Error(), "it calls extender ext, which is not deployed any more") {
		t.Fatalf("error %v", err)
	}
	if diff := cmp.Diff(before, inUse(t, w.state(t, "sched"))); diff != "" {
		t.Errorf("the refused rollback changed something (-before +after):\n%s", diff)
	}

	if _, err := extenders.Deploy(t.Context(), w.deps, w.deployment(t, w.options("ext"))); err != nil {
		t.Fatal(err)
	}
	_, warnings, err := w.rollBack(t, 2, release)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(warnings, func(text string) bool {
		return strings.Contains(text, "extender ext was deployed again since revision 2")
	}) {
		t.Errorf("warnings %q", warnings)
	}
	service, err := w.kube.CoreV1().Services(w.ns).Get(t.Context(), "ext", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if text := w.configuration(t, "sched"); !strings.Contains(text, "urlPrefix: https://"+service.Spec.ClusterIP+"\n") {
		t.Errorf("the scheduler does not call %s:\n%s", service.Spec.ClusterIP, text)
	}
}

func TestRollbackThatCannotWorkChangesNothing(t *testing.T) {
	w := newWorld(t)
	w.scheduler(t, "sched")
	if _, err := extenders.Deploy(t.Context(), w.deps, w.deployment(t, w.options("ext"), "sched")); err != nil {
		t.Fatal(err)
	}
	before := inUse(t, w.state(t, "sched"))
	unchanged := func(t *testing.T) {
		t.Helper()
		if diff := cmp.Diff(before, inUse(t, w.state(t, "sched"))); diff != "" {
			t.Errorf("something changed (-before +after):\n%s", diff)
		}
	}
	t.Run("no such revision", func(t *testing.T) {
		if _, _, err := w.rollBack(t, 9, release); err == nil || !strings.Contains(err.Error(), "no revision 9") {
			t.Errorf("error %v", err)
		}
		unchanged(t)
	})
	t.Run("another minor release", func(t *testing.T) {
		if _, _, err := w.rollBack(t, 1, versions.Release{Major: 1, Minor: 23, Patch: 6}); err == nil ||
			!strings.Contains(err.Error(), "it waits for storage.k8s.io/v1 CSIStorageCapacities") {
			t.Errorf("error %v", err)
		}
		unchanged(t)
	})
	t.Run("the scheduler is not stable", func(t *testing.T) {
		w.client.fails = notStable{"sched", "localhost/scheduler"}
		_, _, err := w.rollBack(t, 1, release)
		w.client.fails = notStable{}
		if err == nil || !strings.Contains(err.Error(), "rollback to revision 1") {
			t.Fatalf("error %v", err)
		}
		unchanged(t)
		revisions, err := w.deps.Ledger.Revisions(t.Context(), w.ns, "sched")
		if last := revisions[len(revisions)-1]; err != nil || last.Status != apply.Failed ||
			last.Origin != "rollback to revision 1" {
			t.Errorf("the last revision is %+v, %v", last, err)
		}
	})
}
