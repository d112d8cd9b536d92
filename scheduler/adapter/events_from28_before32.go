//go:build ignore

package adapter

// hinted returns the plugin's events without its hints. With the feature gate
// SchedulerQueueingHints these releases would call them, but they do not report the changes of a
// node on which the pod did not fit at that time (preCheckForNode in eventhandlers.go), so that a
// hint does not see all changes that help.
func (p *EventsPoint) hinted() []clusterEventWithHint {
	var registered []clusterEventWithHint
	for _, e := range p.Plugin.EventsToRegister() {
		registered = append(registered, clusterEventWithHint{Event: event(e)})
	}
	return registered
}
