//go:build pmksched

package f

import (
	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Less calls the plugin.
func (p *QueueSortPoint) Less(a, b fwk.QueuedEntityInfo) bool {
	return p.Plugin.Less(queued(a), queued(b))
}

// queued has no pod if a group of pods is queued.
func queued(q fwk.QueuedEntityInfo) scheduler.QueuedPod {
	var pod *corev1.Pod
	if single, ok := q.(*framework.QueuedPodInfo); ok {
		pod = single.Pod
	}
	return scheduler.QueuedPod{Pod: pod, Priority: q.GetPriority(), Timestamp: q.GetTimestamp(), Attempts: q.GetAttempts()}
}
