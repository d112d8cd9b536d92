//go:build linux

package simulate

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	pmksched "github.com/pmk-sched/pmk-sched"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/foresight/kubescheduler"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/decision"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// curiousFile is the file that testdata/curious writes.
const curiousFile = "/tmp/pmk-sched-test-curious"

// curious is a scheduler with the plugin of testdata/curious. recorded is set if a cluster has
// recorded it.
func curious(t *testing.T, s *simulator, recorded bool, addresses ...string) kubescheduler.Scheduler {
	t.Helper()
	plugin := plugins.Plugin{Dir: "testdata/curious"}
	program, err := controlplane.Build(t.Context(),
		build.Options{Release: s.release, Plugins: []plugins.Plugin{plugin}, Sources: pmksched.Sources})
	if err != nil {
		t.Fatal(err)
	}
	file := run.WriteFile(t, "secret", "secret")
	return kubescheduler.Scheduler{
		Request: pack.Scheduler{Name: "default-scheduler", Recorded: recorded, Plugins: []pack.Plugin{{Plugin: plugin}}},
		Release: s.release, Program: program,
		Plugins: []profiles.Plugin{{Name: "Curious", Points: []string{"filter"},
			Args: fmt.Appendf(nil, "file: %s\naddresses: [%s]", file, strings.Join(addresses, ", "))}},
	}
}

// Decisions are explained with extenders of pmk-sched, and with a configuration that the scheduler
// writes.
func TestDecisionsOfRecordedPluginsAreExplained(t *testing.T) {
	cluster := node("a", 64, "curious: node", "") + node("b", 8, "", "") + pod("web", "1", "", "", "")
	withSimulator(t, apiserver.Release, func(s *simulator) error {
		var got [2]*decision.Input
		for i, recorded := range []bool{false, true} {
			o := s.options(t, newObjects(t, cluster), pack.Scheduler{})
			o.Scheduler = curious(t, s, recorded)
			var err error
			if got[i], err = decision.Observe(t.Context(), s.server, o, "shop", "web", "", true); err != nil {
				return err
			}
			got[i].Notes = nil
			for _, f := range got[i].Filters {
				slices.Sort(f.Passed) // the scheduler filters nodes in parallel
			}
		}
		equal(t, "decisions", got[0], got[1])
		if got[1].Selected != "b" || !slices.ContainsFunc(got[1].Filters,
			func(f decision.Filter) bool { return f.Plugin == "Curious" && slices.Equal(f.Passed, []string{"b"}) }) {
			t.Errorf("got %+v", got[1])
		}
		return os.RemoveAll(curiousFile)
	})
}
