//go:build linux && releases

package plugins

import (
	"slices"

	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/versions"
)

// operations is the number of random operations of limitsHold.
const operations = 10_000

func releases() []string {
	return []string{"v1.20.15", apiserver.Release, "v1.29.2", "v1.34.2", versions.Releases()[0].String()}
}

func behaviors() []behavior {
	return slices.Concat(everyday, []behavior{
		{"one of two gangs is placed, and the other when the first is gone", oneOfTwoGangs},
		{"gangs that get in each other's way are placed in turn", rivalGangs},
		{"a gang that is too large does not starve single pods", hugeGang},
		{"a gang is placed when its PodGroup is created", sizedGang},
		{"teams borrow and give back", borrowingTeams},
		{"devices are known after a restart", devicesAfterRestart},
		{"pods go to the nearest node", nearestNode},
		{"GPUs that come free wake pods", gpusWake},
		{"quota that comes free wakes pods", quotaWakes},
		{"room for a group wakes its pods", roomWakesGroups},
		{"room in a NUMA node wakes pods", zonesWake},
		{"status updates of other pods wake nothing", statusesWakeNothing},
	})
}
