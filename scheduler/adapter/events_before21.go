//go:build ignore

package adapter

import "github.com/pmk-sched/pmk-sched/scheduler"

// EventsPoint has no effect: 1.20 retries every pod after every event.
type EventsPoint struct {
	Host   *Host
	Plugin scheduler.EventsPlugin
}

// EventsToRegister calls the plugin. The framework does not call it.
func (p *EventsPoint) EventsToRegister() []scheduler.ClusterEvent { return p.Plugin.EventsToRegister() }
