package adapter

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// Score calls the plugin.
func (p *ScorePoint) Score(ctx context.Context, s cycleState, pod *corev1.Pod, n nodeInfo) (int64, *status) {
	score, result := p.Plugin.Score(ctx, stateOf(s), pod, nodeOf(n))
	return score, fromPlugin(result)
}
