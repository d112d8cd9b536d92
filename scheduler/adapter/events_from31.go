package adapter

import "context"

// EventsToRegister calls the plugin.
func (p *EventsPoint) EventsToRegister(context.Context) ([]clusterEventWithHint, error) { //nolint:revive // an alias of the framework's type
	return p.hinted(), nil
}
