//go:build linux && releases

package plugins

import (
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// Plugins of examples/ keep the pods of a team on its nodes, prefer cheap nodes, and spread an
// application over racks, in the scheduler of each release.
func TestExamplePluginsAtReleases(t *testing.T) {
	t.Parallel()
	args := []string{"plugin", "test", "-f", "testdata/examples/pmk-sched.yaml"}
	for _, release := range releases() {
		args = append(args, "--branch", release)
	}
	t.Log(run.PMKSched(t, append(args, "testdata/examples/scenario.yaml")...).OK(t).Stdout)
}
