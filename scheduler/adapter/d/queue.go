//go:build pmksched

package d

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// PreEnqueuePoint is the extension point PreEnqueue.
type PreEnqueuePoint struct {
	Host   *Host
	Plugin scheduler.PreEnqueuePlugin
}

var _ framework.PreEnqueuePlugin = &struct {
	Base
	PreEnqueuePoint
}{}

// PreEnqueue calls the plugin.
func (p *PreEnqueuePoint) PreEnqueue(ctx context.Context, pod *corev1.Pod) *framework.Status {
	return fromPlugin(p.Plugin.PreEnqueue(ctx, pod))
}

// QueueSortPoint is the extension point QueueSort.
type QueueSortPoint struct {
	Host   *Host
	Plugin scheduler.QueueSortPlugin
}

var _ framework.QueueSortPlugin = &struct {
	Base
	QueueSortPoint
}{}

// EventsPoint is the framework's EnqueueExtensions.
type EventsPoint struct {
	Host   *Host
	Plugin scheduler.EventsPlugin
}

var _ framework.EnqueueExtensions = &struct {
	Base
	EventsPoint
}{}

// EventsToRegister calls the plugin.
func (p *EventsPoint) EventsToRegister(context.Context) ([]framework.ClusterEventWithHint, error) {
	var registered []framework.ClusterEventWithHint
	for _, e := range p.Plugin.EventsToRegister() {
		event := framework.ClusterEvent{Resource: framework.EventResource(e.Resource), ActionType: action(e.Action)}
		registered = append(registered, framework.ClusterEventWithHint{Event: event})
	}
	return registered, nil
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
