//go:build linux

package plugins

import (
	"path/filepath"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// A team gets its capacity back from one that borrows, and no more, in the scheduler of each release.
func TestQuotasAtReleases(t *testing.T) {
	t.Parallel()
	args := []string{"plugin", "test", "--with", "builtin:elasticquota"}
	for _, release := range scenarioReleases() {
		args = append(args, "--branch", release)
	}
	r := run.PMKSched(t, append(args, filepath.Join(run.Root(), "scheduler", "plugins", "elasticquota", "testdata", "scenario.yaml"))...).OK(t)
	t.Log(r.Stdout)
}

// A pod of the class Guaranteed is placed where one NUMA node has room for it, in the scheduler of each release.
func TestZonesAtReleases(t *testing.T) {
	t.Parallel()
	args := []string{"plugin", "test", "--with", "builtin:numaaware"}
	for _, release := range scenarioReleases() {
		args = append(args, "--branch", release)
	}
	r := run.PMKSched(t, append(args, filepath.Join(run.Root(), "scheduler", "plugins", "numaaware", "testdata", "scenario.yaml"))...).OK(t)
	t.Log(r.Stdout)
}
