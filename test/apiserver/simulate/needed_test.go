//go:build linux

package simulate

import (
	"context"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
)

// A copy of the full node runs its DaemonSet too, so that each one has room for one of the pods.
func TestPendingPodsNeedAsManyNodesAsTheSchedulerSays(t *testing.T) {
	atReleases(t, checkNeeded)
}

func checkNeeded(t *testing.T, release string) {
	t.Helper()
	const daemon = "ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: agent, uid: " +
		"11111111-0000-0000-0000-000000000009}]"
	objects := newObjects(t, node("a", 4, "", "")+pod("agent", "1", daemon, "nodeName: a", "phase: Running")+
		pod("full", "3", "", "nodeName: a", "phase: Running")+
		pod("small-1", "2", "", "", "")+pod("small-2", "2", "", "", ""))
	var need *report.TemplateNeed
	withSimulator(t, release, func(sim *simulator) (err error) {
		need, _, err = simulate.NeededOf(t.Context(), sim.session, simulate.Script{}, "a", 8,
			func(ctx context.Context, s scenario.Scenario) (*report.Report, error) {
				o := sim.options(t, objects, pack.Scheduler{})
				o.Scenario = s
				return sim.server.Run(ctx, o)
			})
		return err
	})
	equal(t, "nodes, placed, used, unplaced and simulations", [5]int{2, 2, 2, 0, 2},
		[5]int{need.Nodes, need.Placed, need.Used, len(need.Unplaced), need.Simulations})
	if need.Limited || !strings.HasPrefix(need.Template, "a") {
		t.Errorf("got %+v", need)
	}
}
