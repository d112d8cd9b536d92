//go:build pmksched

package e

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
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
func (p *PreEnqueuePoint) PreEnqueue(ctx context.Context, pod *corev1.Pod) *fwk.Status {
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
func (p *EventsPoint) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	var registered []fwk.ClusterEventWithHint
	for _, e := range p.Plugin.EventsToRegister() {
		event := fwk.ClusterEvent{Resource: fwk.EventResource(e.Resource), ActionType: action(e.Action)}
		registered = append(registered, fwk.ClusterEventWithHint{Event: event})
	}
	return registered, nil
}

// action spells actions in the release's own bits, which move from one minor to the next.
func action(a scheduler.ActionType) fwk.ActionType {
	if a&scheduler.ActionAll == scheduler.ActionAll {
		return fwk.All
	}
	var all fwk.ActionType
	for _, bit := range []struct {
		portable scheduler.ActionType
		own      fwk.ActionType
	}{
		{scheduler.ActionAdd, fwk.Add},
		{scheduler.ActionDelete, fwk.Delete},
		{scheduler.ActionUpdate, fwk.Update},
		{scheduler.ActionUpdateNodeAllocatable, fwk.UpdateNodeAllocatable},
		{scheduler.ActionUpdateNodeLabel, fwk.UpdateNodeLabel},
		{scheduler.ActionUpdateNodeTaint, fwk.UpdateNodeTaint},
		{scheduler.ActionUpdateNodeCondition, fwk.UpdateNodeCondition},
	} {
		if a&bit.portable != 0 {
			all |= bit.own
		}
	}
	return all
}
