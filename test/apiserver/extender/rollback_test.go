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
	revisions, err := w.deps.Cluster.Revisions(t.Context(), w.ns, "sched")
	if err != nil {
		t.Fatal(err)
	}
	history, err := deploy.History(t.Context(), revisions, w.deps.Cluster.ReadRevision)
	if err != nil {
		t.Fatal(err)
	}
	last := history[len(history)-1]
	if last.Origin != "rollback to revision 2" || last.By != "root@here" || !last.Current ||
		!slices.Equal(last.Extenders, []string{"ext"}) {
		t.Errorf("history %+v", history)
	}
}
