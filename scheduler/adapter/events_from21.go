package adapter

import "github.com/pmk-sched/pmk-sched/scheduler"

// EventsPoint is the framework's EnqueueExtensions.
type EventsPoint struct {
	Host   *Host
	Plugin scheduler.EventsPlugin
}

var _ enqueueExtensions = &struct {
	Base
	EventsPoint
}{}

func event(e scheduler.ClusterEvent) clusterEvent {
	return clusterEvent{Resource: eventResource(e.Resource), ActionType: action(complete(e))}
}

// action translates actions to the release's own bits, which differ between minors.
func action(a scheduler.ActionType) actionType {
	var translated actionType
	for portable, own := range actions() {
		if a&portable == portable {
			translated |= own
		}
	}
	return translated
}
