//go:build linux

package plugins

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/foresight/policytest"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// newPluginModule creates a plugin with `plugin new` and returns its directory.
func newPluginModule(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "quiet")
	run.PMKSched(t, "plugin", "new", "--dir", dir, "Quiet").OK(t).Prints(t, "plugin test -f pmk-sched.yaml --branch v")
	return dir
}

// pluginTestArgs returns the arguments of `plugin test` for scenarios of a plugin's directory.
func pluginTestArgs(dir string, args ...string) []string {
	return append([]string{"plugin", "test", "-f", filepath.Join(dir, "pmk-sched.yaml"), "--branch", apiserver.Release},
		args...)
}

type testResult struct {
	Runs []policytest.Result `json:"runs"`
}

func TestNewPluginPassesItsScenario(t *testing.T) {
	t.Parallel()
	dir := newPluginModule(t)
	file := filepath.Join(dir, "scenario.yaml")
	r := run.PMKSched(t, pluginTestArgs(dir, "-o", "json", file)...).OK(t)
	r.Prints(t, "2 of 2 expectations are met")
	t.Log(r.Stderr)
	result := run.Decode[testResult](t, r.Stdout)
	if len(result.Runs) != 1 || result.Runs[0].Release != apiserver.Release || result.Runs[0].Test != file ||
		result.Runs[0].Seconds <= 0 {
		t.Fatalf("got %s", r)
	}
	const reason = "pending: the node has the label quiet/exclude"
	got := result.Runs[0].Expectations
	web := policytest.Outcome{Name: "default/web: on node open", Expected: "on node open", Got: "on node open", Met: true}
	if len(got) != 2 || !cmp.Equal(got[0], web) ||
		got[1].Name != "default/stuck: "+reason || got[1].Expected != reason ||
		!strings.Contains(got[1].Got, "2 node(s) the node has the label quiet/exclude") &&
			!strings.Contains(got[1].Got, "2 the node has the label quiet/exclude") {
		t.Errorf("got %+v", got)
	}
}

func TestScenariosThatCannotBeReadAreRefused(t *testing.T) {
	t.Parallel()
	dir := newPluginModule(t)
	run.PMKSched(t, pluginTestArgs(dir)...).Fails(t, 2, "PATH is required")
	run.PMKSched(t, "plugin", "test", "--branch", apiserver.Release, filepath.Join(dir, "scenario.yaml")).Fails(t, 2,
		"no plugins to test", "--with")
	empty := run.WriteFile(t, "steps.yaml",
		"apiVersion: pmk-sched.io/v1alpha1\nkind: Scenario\nsteps: [{scenario: pending}]\n")
	run.PMKSched(t, pluginTestArgs(dir, empty)...).Fails(t, 2, `expected a SchedulingTest, got pmk-sched.io/v1alpha1 "Scenario"`)
}
