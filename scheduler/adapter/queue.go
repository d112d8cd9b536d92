package adapter

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// QueueSortPoint is the extension point QueueSort.
type QueueSortPoint struct {
	Host   *Host
	Plugin scheduler.QueueSortPlugin
}

// Less calls the plugin.
func (p *QueueSortPoint) Less(a, b queuedPodInfo) bool {
	return p.Plugin.Less(queuedPod(a), queuedPod(b))
}

func priorityOf(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}
