package adapter

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// Score calls the plugin.
func (p *ScorePoint) Score(
	ctx context.Context, s cycleState, pod *corev1.Pod, n nodeInfo,
) (score int64, result *status) {
	defer p.Host.recoverFrom("Score", pod, &result)
	score, answer := p.Plugin.Score(ctx, stateOf(s), pod, nodeOf(n))
	return p.Host.rawScore(score), fromPlugin(answer)
}
