package loadaware

import (
	"context"
	"math"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Score returns the weighted mean of the metrics' free fractions.
func (l *LoadAware) Score(ctx context.Context, _ scheduler.State, pod *corev1.Pod,
	node scheduler.NodeInfo) (int64, *scheduler.Status) {
	free, weights := 0.0, 0.0
	for _, src := range l.sources {
		weight := float64(*src.metric.Weight)
		load, ok := l.load(src, node)
		if !ok || weight == 0 {
			continue
		}
		weights += weight
		if load < 1 {
			free += weight * (1 - load)
		}
	}
	score := int64(noData)
	if weights > 0 {
		score = int64(math.Round(float64(scheduler.MaxNodeScore) * free / weights))
	}
	if log := l.logs(ctx); log.Enabled(10) {
		log.Info(10, "LoadAware scored a node", "namespace", pod.Namespace, "pod", pod.Name, "node", node.Node().Name,
			"score", score)
	}
	return score, nil
}

// NormalizeScore gives nodes whose load is unknown the other nodes' mean score.
func (l *LoadAware) NormalizeScore(ctx context.Context, _ scheduler.State, pod *corev1.Pod,
	scores []scheduler.NodeScore) *scheduler.Status {
	sum, known := int64(0), int64(0)
	for i := range scores {
		if scores[i].Score != noData {
			sum += scores[i].Score
			known++
		}
	}
	mean := scheduler.MinNodeScore
	if known > 0 {
		mean = (sum + known/2) / known
	}
	for i := range scores {
		if scores[i].Score == noData {
			scores[i].Score = mean
		}
	}
	if log := l.logs(ctx); log.Enabled(5) {
		log.Info(5, "LoadAware scored nodes", "namespace", pod.Namespace, "pod", pod.Name, "nodes", len(scores),
			"withoutData", int64(len(scores))-known, "mean", mean)
	}
	return nil
}
