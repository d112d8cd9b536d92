//go:build ignore

package main

import "github.com/pmk-sched/pmk-sched/scheduler"

// The framework does not use events yet.
var nodeAction, anyAction = int64(scheduler.ActionAdd | scheduler.ActionUpdateNodeLabel), int64(scheduler.ActionAll)
