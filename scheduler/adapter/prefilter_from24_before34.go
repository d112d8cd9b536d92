//go:build ignore

package adapter

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// PreFilter calls the plugin.
func (p *PreFilterPoint) PreFilter(ctx context.Context, s cycleState, pod *corev1.Pod) (*preFilterResult, *status) {
	return p.preFilter(ctx, s, pod)
}
