//go:build pmksched

package b

import (
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Less calls the plugin.
func (p *QueueSortPoint) Less(a, b *framework.QueuedPodInfo) bool {
	return p.Plugin.Less(queuedPod(a), queuedPod(b))
}

func queuedPod(q *framework.QueuedPodInfo) scheduler.QueuedPod {
	var priority int32
	if q.Pod.Spec.Priority != nil {
		priority = *q.Pod.Spec.Priority
	}
	return scheduler.QueuedPod{Pod: q.Pod, Priority: priority, Timestamp: q.Timestamp, Attempts: q.Attempts}
}
