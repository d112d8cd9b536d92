//go:build ignore

package adapter

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// PreBindPreFlight calls the plugin.
func (p *PreBindPoint) PreBindPreFlight(ctx context.Context, s cycleState, pod *corev1.Pod, node string) *status {
	return p.preFlight(ctx, s, pod, node)
}
