//go:build linux

package simulate

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/foresight/policytest"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// The examples hold for the cluster of the examples, and simulations that several need run once.
func TestExamplesOfPolicies(t *testing.T) {
	atReleases(t, checkExamplesOfPolicies)
}

func checkExamplesOfPolicies(t *testing.T, release string) {
	t.Helper()
	dir := filepath.Join(run.Root(), "examples", "policies")
	r := run.PMKSched(t, "test", "--snapshot", filepath.Join(dir, "cluster.yaml"), "--branch", release, "-o", "json",
		dir).OK(t)
	r.Prints(t, "17 of 17 expectations are met")
	equal(t, "simulations", 3, strings.Count(r.Stderr, "✓ load the objects"))
	runs := run.Decode[struct{ Runs []policytest.Result }](t, r.Stdout).Runs
	equal(t, "tests", 12, len(runs))
}
