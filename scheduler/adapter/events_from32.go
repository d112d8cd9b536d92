package adapter

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// hinted returns the plugin's events with its hints, and the pod changes after which earlier
// releases retry it: these releases ask the plugins about changes to the pod itself, too.
func (p *EventsPoint) hinted() []clusterEventWithHint {
	var registered []clusterEventWithHint
	updates := false
	for _, e := range p.Plugin.EventsToRegister() {
		translated := clusterEventWithHint{Event: event(e)}
		if e.Helps != nil {
			translated.QueueingHintFn = p.Host.hint(e.Helps)
		}
		registered = append(registered, translated)
		if isPod := e.Resource == scheduler.EventPod || e.Resource == scheduler.EventAny; isPod &&
			e.Action&scheduler.ActionUpdate != 0 {
			updates = true
			// a hint cannot see the resources that the kubelet has freed: old releases of the API do not
			// have the field
			if e.Helps != nil {
				registered = append(registered,
					clusterEventWithHint{Event: clusterEvent{Resource: podResource, ActionType: podShrinks}})
			}
		}
	}
	if !updates {
		own := p.Host.hint(func(*corev1.Pod, interface{}, interface{}) bool { return false })
		registered = append(registered,
			clusterEventWithHint{Event: clusterEvent{Resource: podResource, ActionType: podEdits}, QueueingHintFn: own})
	}
	return registered
}

// complete returns an event's actions: these releases report every node change.
func complete(e scheduler.ClusterEvent) scheduler.ActionType { return e.Action }

// hint returns the framework's form of a plugin's hint. If the plugin panics, the pod is retried.
func (h *Host) hint(helps func(pod *corev1.Pod, before, after interface{}) bool) queueingHintFn {
	return func(_ klog.Logger, pod *corev1.Pod, before, after interface{}) (decision queueingHint, _ error) {
		decision = queue
		defer h.recoverFrom("Events", pod, nil)
		// The framework passes on the informer's event for an object of a custom resource whose
		// deletion the informer missed.
		before = scheduler.LastState(before)
		if before == nil && after == nil || isOwnChange(pod, before, after) || helps(pod, before, after) {
			return queue, nil
		}
		return queueSkip, nil
	}
}

// isOwnChange reports whether an event is a change to the pod itself after which earlier releases
// retry it (isPodUpdated in scheduling_queue.go): not to its status, which the scheduler writes
// after each attempt.
func isOwnChange(pod *corev1.Pod, before, after interface{}) bool {
	old, isPod := before.(*corev1.Pod)
	updated, isUpdate := after.(*corev1.Pod)
	if !isPod || !isUpdate || updated.UID != pod.UID {
		return false
	}
	return !reflect.DeepEqual(withoutStatus(old), withoutStatus(updated))
}

func withoutStatus(pod *corev1.Pod) *corev1.Pod {
	p := *pod
	p.Status, p.ResourceVersion, p.Generation, p.ManagedFields, p.Finalizers = corev1.PodStatus{}, "", 0, nil, nil
	return &p
}

func (r rejections) Status(node string) *scheduler.Status { return toPlugin(r.nodes.Get(node)) }
