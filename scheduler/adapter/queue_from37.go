//go:build ignore

package adapter

import (
	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

type queuedPodInfo = fwk.QueuedEntityInfo

// queuedPod returns no pod if the entity is a group of pods.
func queuedPod(q queuedPodInfo) scheduler.QueuedPod {
	var pod *corev1.Pod
	if single, ok := q.(*framework.QueuedPodInfo); ok {
		pod = single.Pod
	}
	return scheduler.QueuedPod{Pod: pod, Priority: q.GetPriority(), Timestamp: q.GetTimestamp(), Attempts: q.GetAttempts()}
}
