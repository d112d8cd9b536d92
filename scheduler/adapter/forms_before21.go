//go:build ignore

package adapter

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// EventsPoint has no effect: 1.20 retries every pod after every event.
type EventsPoint struct {
	Host   *Host
	Plugin scheduler.EventsPlugin
}

// EventsToRegister calls the plugin. The framework does not call it.
func (p *EventsPoint) EventsToRegister() []scheduler.ClusterEvent { return p.Plugin.EventsToRegister() }

// otherPod is the pod that AddPod and RemovePod get.
type otherPod = *corev1.Pod

func podOfOther(p otherPod) *corev1.Pod { return p }

func reject(p waitingPod, _, message string) { p.Reject(message) }
