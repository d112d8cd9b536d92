//go:build ignore

package adapter

// EventsToRegister calls the plugin.
func (p *EventsPoint) EventsToRegister() []clusterEventWithHint { return p.hinted() }
