package coscheduling

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Results of an attempt to place a group.
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

type metrics struct{ attempts *prometheus.CounterVec }

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	collector, err := scheduler.Register(r, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "pmk_sched_coscheduling_attempts_total",
		Help: "Attempts of the Coscheduling plugin to place a pod group, by result.",
	}, []string{"result"}))
	if err != nil {
		return nil, err
	}
	attempts, ok := collector.(*prometheus.CounterVec)
	if !ok {
		return nil, fmt.Errorf("a metric of another type has this name")
	}
	return &metrics{attempts: attempts}, nil
}
