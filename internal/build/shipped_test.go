package build

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/versions"
)

// The scheduler of the release that go.mod pins is what a build would generate for it.
func TestCommittedSchedulerIsWhatWouldBeGenerated(t *testing.T) {
	sources := os.DirFS("../..")
	shipped, err := Builtins(sources)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Release: versions.Release{Major: 1, Minor: 36, Patch: 3}, Sources: sources}
	for _, name := range shipped {
		o.Plugins = append(o.Plugins, Plugin{Builtin: name})
	}
	rules, _, err := versions.Select(o.Release)
	if err != nil {
		t.Fatal(err)
	}
	j := newJob(t.TempDir(), "", false, nil, nil, nil)
	defer j.close(&err)
	set, err := j.pluginSet(t.Context(), o, rules, rules.Go)
	if err != nil {
		t.Fatal(err)
	}
	want, err := set.registrations()
	if err != nil {
		t.Fatal(err)
	}
	const committed = "../../cmd/pmk-scheduler/plugins.go"
	if *update {
		if err := os.WriteFile(committed, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(committed)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("run the test with -update (-generated +committed):\n%s", diff)
	}
}
