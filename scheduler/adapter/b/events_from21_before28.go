//go:build pmksched

package b

import (
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// EventsToRegister calls the plugin.
func (p *EventsPoint) EventsToRegister() []framework.ClusterEvent {
	var registered []framework.ClusterEvent
	for _, e := range p.Plugin.EventsToRegister() {
		registered = append(registered, event(e))
	}
	return registered
}
