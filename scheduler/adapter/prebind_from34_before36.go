//go:build ignore

package adapter

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// PreBindPreFlight returns success: PreBind always has work to do.
func (p *PreBindPoint) PreBindPreFlight(context.Context, cycleState, *corev1.Pod, string) *status {
	return nil
}
