//go:build linux && (cases || releases)

package simulate

import (
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/foresight/needed"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// A copy of the full node runs its DaemonSet too, so that each one has room for one of the pods.
func TestPendingPodsNeedAsManyNodesAsTheSchedulerSays(t *testing.T) {
	atReleases(t, checkNeeded)
}

func checkNeeded(t *testing.T, release string) {
	t.Helper()
	const daemon = "ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: agent, uid: " +
		"11111111-0000-0000-0000-000000000009}]"
	file := run.WriteFile(t, "cluster.yaml", node("a", 4, "", "")+pod("agent", "1", daemon, "nodeName: a", "phase: Running")+
		pod("full", "3", "", "nodeName: a", "phase: Running")+
		pod("small-1", "2", "", "", "")+pod("small-2", "2", "", "", ""))
	args := []string{"simulate", "nodes", "--until-fits", "--snapshot", file, "--branch", release}
	got := run.Decode[needed.Result](t, run.PMKSched(t, append(args, "--template", "a", "-o", "json")...).OK(t).Stdout)
	need := got.Templates[0]
	equal(t, "nodes, placed, used, unplaced and simulations", [5]int{2, 2, 2, 0, 2},
		[5]int{need.Nodes, need.Placed, need.Used, len(need.Unplaced), need.Simulations})
	if need.Limited || need.Template != "a" || got.Release != release {
		t.Errorf("got %+v", got)
	}
	if release != apiserver.Release {
		return
	}
	table := run.PMKSched(t, append(args, "--template", "a", "--limit", "1")...).OK(t).Stdout
	equal(t, "needed with a limit", []string{"a|1|1|1|0|1"}, rowsBelow(table, "TEMPLATE"))
	for _, text := range []string{"\na: more nodes than --limit may place more pods\n", "\nwith a:\n", "Insufficient cpu"} {
		if !strings.Contains(table, text) {
			t.Errorf("the table lacks %q:\n%s", text, table)
		}
	}
	run.PMKSched(t, args...).Fails(t, 2, "--until-fits needs --template")
}
