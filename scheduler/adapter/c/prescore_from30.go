//go:build pmksched

package c

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// PreScore calls the plugin.
func (p *PreScorePoint) PreScore(ctx context.Context, s *framework.CycleState, pod *corev1.Pod, nodes []*framework.NodeInfo) *framework.Status {
	return fromPlugin(p.Plugin.PreScore(ctx, state{s}, pod, nodesOf(nodes)))
}
