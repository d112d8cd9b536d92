package adapter

func (p *EventsPoint) hinted() []clusterEventWithHint {
	var registered []clusterEventWithHint
	for _, e := range p.Plugin.EventsToRegister() {
		registered = append(registered, clusterEventWithHint{Event: event(e)})
	}
	return registered
}
