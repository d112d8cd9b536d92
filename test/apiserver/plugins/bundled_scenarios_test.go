//go:build linux && cases

package plugins

import (
	"path/filepath"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// In the scheduler of each release a team gets its capacity back from one that borrows, and no
// more, and a pod of the class Guaranteed is placed where one NUMA node has room for it.
func TestScenariosOfQuotasAndZonesAtReleases(t *testing.T) {
	t.Parallel()
	flags, files := []string{"plugin", "test"}, []string{}
	for _, release := range releases() {
		flags = append(flags, "--branch", release)
	}
	for _, plugin := range []string{"elasticquota", "numaaware"} {
		flags = append(flags, "--with", "builtin:"+plugin)
		files = append(files, filepath.Join(run.Root(), "scheduler", "plugins", plugin, "testdata", "scenario.yaml"))
	}
	t.Log(run.PMKSched(t, append(flags, files...)...).OK(t).Stdout)
}
