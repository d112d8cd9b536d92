//go:build ignore

package adapter

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// Score calls the plugin with the snapshot's node of that name.
func (p *ScorePoint) Score(
	ctx context.Context, s cycleState, pod *corev1.Pod, name string,
) (score int64, result *status) {
	defer p.Host.recoverFrom("Score", pod, &result)
	if p.Host.skips.score(s) {
		return 0, nil
	}
	n, err := p.Host.Nodes().Get(name)
	if err != nil {
		return 0, asStatus(err)
	}
	score, answer := p.Plugin.Score(ctx, stateOf(s), pod, n)
	return p.Host.rawScore(score), fromPlugin(answer)
}
