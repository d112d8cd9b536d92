package adapter

import (
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

type (
	clusterEvent         = fwk.ClusterEvent
	actionType           = fwk.ActionType
	eventResource        = fwk.EventResource
	clusterEventWithHint = fwk.ClusterEventWithHint
	queueingHint         = fwk.QueueingHint
	queueingHintFn       = fwk.QueueingHintFn
)

const (
	queue     = fwk.Queue
	queueSkip = fwk.QueueSkip

	podResource = fwk.Pod
	podShrinks  = fwk.UpdatePodScaleDown
	podEdits    = fwk.UpdatePodLabel | fwk.UpdatePodScaleDown | fwk.UpdatePodSchedulingGatesEliminated | fwk.UpdatePodToleration
)

func actions() map[scheduler.ActionType]actionType {
	return map[scheduler.ActionType]actionType{
		scheduler.ActionAll:                   fwk.All,
		scheduler.ActionAdd:                   fwk.Add,
		scheduler.ActionDelete:                fwk.Delete,
		scheduler.ActionUpdate:                fwk.Update,
		scheduler.ActionUpdateNodeAllocatable: fwk.UpdateNodeAllocatable,
		scheduler.ActionUpdateNodeLabel:       fwk.UpdateNodeLabel,
		scheduler.ActionUpdateNodeTaint:       fwk.UpdateNodeTaint,
		scheduler.ActionUpdateNodeCondition:   fwk.UpdateNodeCondition,
	}
}
