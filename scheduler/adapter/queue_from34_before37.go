package adapter

import (
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

type queuedPodInfo = fwk.QueuedPodInfo

func queuedPod(q queuedPodInfo) scheduler.QueuedPod {
	pod := q.GetPodInfo().GetPod()
	return scheduler.QueuedPod{
		Pod: pod, Priority: scheduler.PodPriority(pod), Timestamp: q.GetTimestamp(), Attempts: q.GetAttempts(),
	}
}
