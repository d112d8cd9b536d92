//go:build pmksched

package b

import (
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// EventsPoint is the framework's EnqueueExtensions.
type EventsPoint struct {
	Host   *Host
	Plugin scheduler.EventsPlugin
}

var _ framework.EnqueueExtensions = &struct {
	Base
	EventsPoint
}{}

func event(e scheduler.ClusterEvent) framework.ClusterEvent {
	return framework.ClusterEvent{Resource: framework.GVK(e.Resource), ActionType: action(e.Action)}
}

// action spells actions in the release's own bits, which move from one minor to the next.
func action(a scheduler.ActionType) framework.ActionType {
	if a&scheduler.ActionAll == scheduler.ActionAll {
		return framework.All
	}
	var all framework.ActionType
	for _, bit := range []struct {
		portable scheduler.ActionType
		own      framework.ActionType
	}{
		{scheduler.ActionAdd, framework.Add},
		{scheduler.ActionDelete, framework.Delete},
		{scheduler.ActionUpdate, framework.Update},
		{scheduler.ActionUpdateNodeAllocatable, framework.UpdateNodeAllocatable},
		{scheduler.ActionUpdateNodeLabel, framework.UpdateNodeLabel},
		{scheduler.ActionUpdateNodeTaint, framework.UpdateNodeTaint},
		{scheduler.ActionUpdateNodeCondition, framework.UpdateNodeCondition},
	} {
		if a&bit.portable != 0 {
			all |= bit.own
		}
	}
	return all
}
