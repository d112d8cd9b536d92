package adapter

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// PreBindPreFlight returns success: PreBind always has work to do.
func (p *PreBindPoint) PreBindPreFlight(context.Context, cycleState, *corev1.Pod, string) (*fwk.PreBindPreFlightResult, *status) {
	return nil, nil
}
