package f

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	framework "k8s.io/kube-scheduler/framework"
)

// PreBindPreFlight says that PreBind has something to do.
func (p *PreBindPoint) PreBindPreFlight(context.Context, framework.CycleState, *corev1.Pod, string) (*framework.PreBindPreFlightResult, *framework.Status) {
	return nil, nil
}
