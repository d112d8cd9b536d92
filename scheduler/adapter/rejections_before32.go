//go:build ignore

package adapter

import (
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

type nodeStatuses = framework.NodeToStatusMap

// Status returns Unresolvable for a node that is not in the map, as the framework does.
func (r rejections) Status(node string) *scheduler.Status {
	if s, ok := r.nodes[node]; ok {
		return toPlugin(s)
	}
	return scheduler.Unresolvable()
}
