package coscheduling

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Results of an attempt to place a group, in metrics.
const (
	// resultPlaced: all pods got a node.
	resultPlaced = "placed"
	// resultUnplaced: no node could run one of the pods, or pods were deleted.
	resultUnplaced = "unplaced"
	// resultTimeout: time was up.
	resultTimeout = "timeout"
	// resultYielded: the group made room for another one.
	resultYielded = "yielded"
)

// newMetrics returns the counter of attempts, by result.
func newMetrics(r prometheus.Registerer) (*prometheus.CounterVec, error) {
	all := scheduler.NewMetrics(r, "pmk_sched_coscheduling_")
	attempts := all.Counter("attempts_total",
		"Attempts of the Coscheduling plugin to place a pod group, by result.", "result")
	return attempts, all.Err()
}
