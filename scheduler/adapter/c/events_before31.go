//go:build pmksched

package c

import (
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// EventsToRegister calls the plugin.
func (p *EventsPoint) EventsToRegister() []framework.ClusterEventWithHint {
	var registered []framework.ClusterEventWithHint
	for _, e := range p.Plugin.EventsToRegister() {
		registered = append(registered, framework.ClusterEventWithHint{Event: event(e)})
	}
	return registered
}
