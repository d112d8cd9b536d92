//go:build pmksched

package c

import (
	"context"

	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// EventsToRegister calls the plugin.
func (p *EventsPoint) EventsToRegister(context.Context) ([]framework.ClusterEventWithHint, error) {
	var registered []framework.ClusterEventWithHint
	for _, e := range p.Plugin.EventsToRegister() {
		registered = append(registered, framework.ClusterEventWithHint{Event: event(e)})
	}
	return registered, nil
}
