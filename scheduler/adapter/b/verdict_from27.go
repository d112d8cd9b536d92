//go:build pmksched

package b

import (
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// The framework itself leaves Filter and Score out after Skip, so nothing is kept here.

func (h *Host) afterPreFilter(_ *framework.CycleState, _ *scheduler.PreFilterResult, status *scheduler.Status) *scheduler.Status {
	return status
}

func (h *Host) beforeFilter(*framework.CycleState, *framework.NodeInfo) (bool, *framework.Status) {
	return false, nil
}

func (h *Host) filterLeftOut(*framework.CycleState) bool { return false }

func (h *Host) afterPreScore(_ *framework.CycleState, status *scheduler.Status) *scheduler.Status {
	return status
}

func (h *Host) scoreLeftOut(*framework.CycleState) bool { return false }
