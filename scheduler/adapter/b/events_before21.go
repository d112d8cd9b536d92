//go:build pmksched

package b

import (
	"github.com/pmk-sched/pmk-sched/scheduler"
)

// EventsPoint is for nothing yet: every event is worth another attempt at every pod.
type EventsPoint struct {
	Host   *Host
	Plugin scheduler.EventsPlugin
}

// EventsToRegister calls the plugin. The framework does not ask.
func (p *EventsPoint) EventsToRegister() []scheduler.ClusterEvent { return p.Plugin.EventsToRegister() }
