//go:build linux

package simulate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/simulate/matrix"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// Each simulation of a matrix has the result that it has alone. One that fails, because a snapshot does not have the node, does not end the others.
func TestMatrixHasTheResultOfEachSimulation(t *testing.T) {
	t.Parallel()
	world := func(half, empty string) string {
		return snapshotOf(t, node(half, 4, "", "")+node(empty, 4, "pool: a", "")+pod("running", "2", "", "nodeName: "+half, "phase: Running")+pod("new", "1", "", "", ""))
	}
	first, second := world("half", "empty"), world("part", "free")
	scheduler := run.WriteFile(t, "packer.yaml", packer)
	drain := run.WriteFile(t, "drain.yaml", "apiVersion: pmk-sched.io/v1alpha1\nkind: Scenario\nsteps: [{scenario: drain, nodes: [half]}]\n")
	r := run.PMKSched(t, "simulate", "matrix", "--branch", apiserver.Release, "--snapshot", first, "--snapshot", second, "-f", "default", "-f", scheduler,
		"--parallel", "2", "-o", "json", "pending", drain)
	r.Fails(t, 1, "2 of 8 simulations failed")
	want := map[string]string{
		"pending default half": "new on empty", "pending packer half": "new on half", "drain default half": "running on empty", "drain packer half": "running on empty",
		"pending default part": "new on free", "pending packer part": "new on part", "drain default part": "half", "drain packer part": "half",
	}
	got := map[string]string{}
	for _, cell := range run.Decode[matrix.Result](t, r.Stdout).Cells {
		key := []string{"pending", "default", "half"}
		if cell.Scenario == drain {
			key[0] = "drain"
		}
		if cell.Scheduler == scheduler {
			key[1] = "packer"
		}
		if cell.Snapshot == second {
			key[2] = "part"
		}
		text := cell.Error
		if cell.Result == nil && strings.Contains(text, "half") {
			text = "half" // the node that is missing
		}
		if cell.Result != nil {
			for _, p := range cell.Result.Placements {
				text += p.Name + " on " + p.Node
			}
		}
		got[strings.Join(key, " ")] = text
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
