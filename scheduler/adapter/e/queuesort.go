//go:build pmksched

package e

import (
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Less calls the plugin.
func (p *QueueSortPoint) Less(a, b fwk.QueuedPodInfo) bool {
	return p.Plugin.Less(queuedPod(a), queuedPod(b))
}

func queuedPod(q fwk.QueuedPodInfo) scheduler.QueuedPod {
	pod := q.GetPodInfo().GetPod()
	var priority int32
	if pod.Spec.Priority != nil {
		priority = *pod.Spec.Priority
	}
	return scheduler.QueuedPod{Pod: pod, Priority: priority, Timestamp: q.GetTimestamp(), Attempts: q.GetAttempts()}
}
