//go:build pmksched

package b

import (
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// QueueSortPoint is the extension point QueueSort.
type QueueSortPoint struct {
	Host   *Host
	Plugin scheduler.QueueSortPlugin
}

var _ framework.QueueSortPlugin = &struct {
	Base
	QueueSortPoint
}{}
