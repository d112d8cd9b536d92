//go:build linux

package simulate

import (
	"context"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/foresight/kubescheduler"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/upgrades"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
)

// A pod whose node differs by the configuration differs in all runs.
func TestPlacementsDifferWithTheConfiguration(t *testing.T) {
	t.Parallel()
	objects := newObjects(t, node("half", 4, "", "")+node("empty", 4, "", "")+
		pod("running", "2", "ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: d, uid: d, controller: true}]",
			"nodeName: half", "phase: Running")+
		pod("packed", "1", "", "", ""))
	var found *upgrades.Placements
	withSimulator(t, apiserver.Release, func(sim *simulator) (err error) {
		simulation := func(preset string) *simulate.Simulation {
			return &simulate.Simulation{Programs: simulate.Programs{Scheduler: kubescheduler.Scheduler{Release: sim.release,
				Program: sim.scheduler, Request: presetScheduler(preset)}}}
		}
		results := map[*simulate.Simulation][]*report.Report{}
		found, _, err = upgrades.CompareRuns(t.Context(), [2]*simulate.Simulation{simulation(""), simulation("binpack")},
			func(ctx context.Context, m *simulate.Simulation, n int) ([]*report.Report, error) {
				for len(results[m]) < n {
					o := sim.options(t, objects, m.Programs.Scheduler.Request)
					o.Scenario = scenario.ReplaceAll()
					result, err := sim.server.Run(ctx, o)
					if err != nil {
						return nil, err
					}
					results[m] = append(results[m], result)
				}
				return results[m][:n], nil
			})
		return err
	})
	want := []upgrades.Difference{
		{Namespace: "shop", Name: "packed", Kind: upgrades.Moves, Node: "empty", NewNode: "half"}}
	equal(t, "differences", want, found.Differences)
}
