//go:build pmksched

package c

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// PreScorePoint is the extension point PreScore.
type PreScorePoint struct {
	Host   *Host
	Plugin scheduler.PreScorePlugin
}

var _ framework.PreScorePlugin = &struct {
	Base
	PreScorePoint
}{}

// ScorePoint is the extension point Score.
type ScorePoint struct {
	Host   *Host
	Plugin scheduler.ScorePlugin
}

var _ framework.ScorePlugin = &struct {
	Base
	ScorePoint
}{}

// Score calls the plugin with the node of that name.
func (p *ScorePoint) Score(ctx context.Context, s *framework.CycleState, pod *corev1.Pod, name string) (int64, *framework.Status) {
	n, err := p.Host.Nodes().Get(name)
	if err != nil {
		return 0, framework.AsStatus(err)
	}
	score, status := p.Plugin.Score(ctx, state{s}, pod, n)
	return score, fromPlugin(status)
}

// ScoreExtensions returns nil if the plugin does not normalise.
func (p *ScorePoint) ScoreExtensions() framework.ScoreExtensions {
	if _, ok := p.Plugin.(scheduler.ScoreNormalizer); !ok {
		return nil
	}
	return (*normalizer)(p)
}

type normalizer ScorePoint

// NormalizeScore calls the plugin with a copy of the list and takes the scores back.
func (p *normalizer) NormalizeScore(ctx context.Context, s *framework.CycleState, pod *corev1.Pod, list framework.NodeScoreList) *framework.Status {
	scores := make([]scheduler.NodeScore, len(list))
	for i := range list {
		scores[i] = scheduler.NodeScore{Name: list[i].Name, Score: list[i].Score}
	}
	status := p.Plugin.(scheduler.ScoreNormalizer).NormalizeScore(ctx, state{s}, pod, scores)
	for i := range list {
		list[i].Score = scores[i].Score
	}
	return fromPlugin(status)
}
