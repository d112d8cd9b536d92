package adapter

import "github.com/pmk-sched/pmk-sched/scheduler"

// skips does nothing: from 1.27 on the framework itself implements Skip from PreFilter and
// PreScore.
type skips struct{}

func (skips) init(scheduler.Plugin) {}

func (skips) afterPreFilter(_ cycleState, _ *scheduler.PreFilterResult, result *scheduler.Status) *scheduler.Status {
	return result
}

func (skips) node(cycleState, nodeInfo) (decided bool, result *status) { return false, nil }

func (skips) filter(cycleState) bool { return false }

func (skips) afterPreScore(_ cycleState, result *scheduler.Status) *scheduler.Status { return result } //nolint:unused // called up to 1.29

func (skips) score(cycleState) bool { return false }
