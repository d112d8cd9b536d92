package build

import (
	"os"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/test/golden"
	"github.com/pmk-sched/pmk-sched/versions"
)

// The committed scheduler equals the output of a build for the release that go.mod pins.
func TestCommittedSchedulerIsWhatWouldBeGenerated(t *testing.T) {
	sources := os.DirFS("../../..")
	bundled, err := plugins.Builtins(sources)
	if err != nil {
		t.Fatal(err)
	}
	o := plugins.Options{Release: versions.Release{Major: 1, Minor: 36, Patch: 3}, Sources: sources}
	for _, name := range bundled {
		o.Plugins = append(o.Plugins, plugins.Plugin{Builtin: name})
	}
	if o.Rules, err = versions.Select(o.Release); err != nil {
		t.Fatal(err)
	}
	o.Platform = pluginPlatform(nil, o.Rules, o.Rules.Go)
	set, err := plugins.Read(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	registrations, err := set.Registrations()
	if err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "../../../cmd/pmk-scheduler/plugins.go", registrations)
}
