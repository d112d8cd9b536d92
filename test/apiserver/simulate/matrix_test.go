//go:build linux && cases

package simulate

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/matrix"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// Each scheduler runs on each snapshot. A simulation that fails, because the snapshot does not have
// the node, does not end the others. One snapshot is a directory of manifests.
func TestMatrixHasTheResultOfEachSimulation(t *testing.T) {
	t.Parallel()
	world := func(half string) string {
		return node(half, 4, "", "") + node("empty", 4, "", "") + pod("running", "2", "", "nodeName: "+half,
			"phase: Running") + pod("new", "1", "", "", "")
	}
	with, without := filepath.Dir(run.WriteFile(t, "cluster.yaml", world("half"))), snapshotOf(t, world("part"))
	scheduler := run.WriteFile(t, "packer.yaml", packer)
	more := run.WriteFile(t, "more.yaml",
		"apiVersion: pmk-sched.io/v1alpha1\nkind: Scenario\nsteps: [{scenario: nodes, add: {half: 1}}]\n")
	r := run.PMKSched(t, "simulate", "matrix", "--branch", apiserver.Release, "--snapshot", with, "--snapshot", without,
		"-f", "default", "-f", scheduler,
		"--parallel", "2", "-o", "json", more)
	r.Fails(t, 1, "2 of 4 simulations failed")
	var got []matrix.Cell
	for _, cell := range run.Decode[matrix.Result](t, r.Stdout).Cells {
		if cell.Result != nil {
			if s := cell.Result.Summary; s.Placed != 1 || len(cell.Result.Placements) != 1 {
				t.Errorf("%s: %+v", cell, s)
			}
			if packs := nodesOf(*cell.Result)["new"] == "half"; packs != (cell.Scheduler == scheduler) {
				t.Errorf("%s: the pod is on %v", cell, nodesOf(*cell.Result))
			}
		} else if !strings.Contains(cell.Error, "half") {
			t.Errorf("%s: %s", cell, cell.Error)
		}
		if failed := cell.Result == nil; failed != (cell.Snapshot == without) {
			t.Errorf("%s: failed %t", cell, failed)
		}
		cell.Outcome = matrix.Outcome{}
		got = append(got, cell)
	}
	want := []matrix.Cell{
		{Snapshot: with, Scenario: more, Scheduler: "default"}, {Snapshot: with, Scenario: more, Scheduler: scheduler},
		{Snapshot: without, Scenario: more, Scheduler: "default"}, {Snapshot: without, Scenario: more, Scheduler: scheduler},
	}
	equal(t, "result", want, got)
}
