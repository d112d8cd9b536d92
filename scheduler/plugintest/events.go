package plugintest

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Retries reports whether a change retries a pod that a plugin rejected, from 1.32 on: whether one
// of the plugin's events has the kind and the action, and no hint or one that returns true. Retries
// does not know the changes after which the scheduler retries a pod without asking the plugin: see
// scheduler.ClusterEvent.
func Retries(plugin scheduler.EventsPlugin, pod *corev1.Pod, of scheduler.EventResource, action scheduler.ActionType,
	before, after interface{}) bool {
	for _, e := range plugin.EventsToRegister() {
		if e.Resource == of && e.Action&action != 0 && (e.Helps == nil || e.Helps(pod, before, after)) {
			return true
		}
	}
	return false
}
