//go:build ignore

package adapter

import (
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

type eventResource = framework.GVK

// complete returns an event's actions. From 1.22 on these releases do not report changes to a node
// with a taint that the pod does not tolerate, as every new node has one, and later report only the
// taint's removal: that is a node change, too (kubernetes#109437). 1.30 and 1.31 do the same for a
// plugin that names ActionAdd.
func complete(e scheduler.ClusterEvent) scheduler.ActionType {
	if e.Resource == scheduler.EventNode {
		return e.Action | scheduler.ActionUpdateNodeTaint
	}
	return e.Action
}
