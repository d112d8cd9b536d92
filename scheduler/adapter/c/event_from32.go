//go:build pmksched

package c

import (
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

func event(e scheduler.ClusterEvent) framework.ClusterEvent {
	return framework.ClusterEvent{Resource: framework.EventResource(e.Resource), ActionType: action(e.Action)}
}
