//go:build ignore

package adapter

import (
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

type (
	clusterEvent = framework.ClusterEvent
	actionType   = framework.ActionType
)

func actions() map[scheduler.ActionType]actionType {
	return map[scheduler.ActionType]actionType{
		scheduler.ActionAll:                   framework.All,
		scheduler.ActionAdd:                   framework.Add,
		scheduler.ActionDelete:                framework.Delete,
		scheduler.ActionUpdate:                framework.Update,
		scheduler.ActionUpdateNodeAllocatable: framework.UpdateNodeAllocatable,
		scheduler.ActionUpdateNodeLabel:       framework.UpdateNodeLabel,
		scheduler.ActionUpdateNodeTaint:       framework.UpdateNodeTaint,
		scheduler.ActionUpdateNodeCondition:   framework.UpdateNodeCondition,
	}
}
