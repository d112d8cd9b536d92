//go:build pmksched

package e

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// PreBindPreFlight says that PreBind has something to do.
func (p *PreBindPoint) PreBindPreFlight(context.Context, fwk.CycleState, *corev1.Pod, string) *fwk.Status {
	return nil
}
