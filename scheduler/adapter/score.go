package adapter

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// PreScorePoint is the extension point PreScore.
type PreScorePoint struct {
	Host   *Host
	Plugin scheduler.PreScorePlugin
}

// ScorePoint is the extension point Score.
type ScorePoint struct {
	Host   *Host
	Plugin scheduler.ScorePlugin
}

// ScoreExtensions returns nil if the plugin does not implement scheduler.ScoreNormalizer.
func (p *ScorePoint) ScoreExtensions() scoreExtensions { //nolint:revive // an alias of the framework's type
	if _, ok := p.Plugin.(scheduler.ScoreNormalizer); !ok {
		return nil
	}
	return (*normalizer)(p)
}

type normalizer ScorePoint

// NormalizeScore calls the plugin with a copy of the list and copies the scores back.
func (p *normalizer) NormalizeScore(ctx context.Context, s cycleState, pod *corev1.Pod, list nodeScoreList) *status {
	if p.Host.skips.score(s) {
		return nil
	}
	scores := make([]scheduler.NodeScore, len(list))
	for i := range list {
		scores[i] = scheduler.NodeScore{Name: list[i].Name, Score: list[i].Score}
	}
	result := p.Plugin.(scheduler.ScoreNormalizer).NormalizeScore(ctx, stateOf(s), pod, scores)
	for i := range list {
		list[i].Score = scores[i].Score
	}
	return fromPlugin(result)
}
