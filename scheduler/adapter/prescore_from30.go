package adapter

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// PreScore calls the plugin.
func (p *PreScorePoint) PreScore(
	ctx context.Context, s cycleState, pod *corev1.Pod, nodes []nodeInfo,
) (result *status) {
	defer p.Host.recoverFrom("PreScore", pod, &result)
	return fromPlugin(p.Plugin.PreScore(ctx, stateOf(s), pod, nodesOf(nodes)))
}
