//go:build ignore

package adapter

// EventsToRegister calls the plugin.
func (p *EventsPoint) EventsToRegister() []clusterEvent {
	var registered []clusterEvent
	for _, e := range p.Plugin.EventsToRegister() {
		registered = append(registered, event(e))
	}
	return registered
}
