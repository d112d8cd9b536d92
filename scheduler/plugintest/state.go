package plugintest

import "github.com/pmk-sched/pmk-sched/scheduler"

// State is a scheduler.State.
type State = scheduler.MapState

// NewState returns the state of a new scheduling cycle.
func NewState() *State { return scheduler.NewMapState() }
