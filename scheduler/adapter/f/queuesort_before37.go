package f

import (
	framework "k8s.io/kube-scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Less calls the plugin.
func (p *QueueSortPoint) Less(a, b framework.QueuedPodInfo) bool {
	return p.Plugin.Less(queuedPod(a), queuedPod(b))
}

func queuedPod(q framework.QueuedPodInfo) scheduler.QueuedPod {
	pod := q.GetPodInfo().GetPod()
	var priority int32
	if pod.Spec.Priority != nil {
		priority = *pod.Spec.Priority
	}
	return scheduler.QueuedPod{Pod: pod, Priority: priority, Timestamp: q.GetTimestamp(), Attempts: q.GetAttempts()}
}
