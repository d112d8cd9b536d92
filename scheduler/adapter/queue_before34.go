//go:build ignore

package adapter

import (
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

type queuedPodInfo = *framework.QueuedPodInfo

func queuedPod(q queuedPodInfo) scheduler.QueuedPod {
	return scheduler.QueuedPod{Pod: q.Pod, Priority: priorityOf(q.Pod), Timestamp: q.Timestamp, Attempts: q.Attempts}
}
