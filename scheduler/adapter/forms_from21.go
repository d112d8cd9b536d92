package adapter

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

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

// otherPod is the pod that AddPod and RemovePod get.
type otherPod = podInfo

func podOfOther(p otherPod) *corev1.Pod { return podOf(p) }

func reject(p waitingPod, plugin, message string) { p.Reject(plugin, message) }
