package extender

import (
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// prioritize scores a request's nodes from 0 to 10: the weighted mean of the policies' scores. An
// unknown node scores 0.
func (c *call) prioritize(a *nodeArguments) ([]int64, error) {
	scores := make([]int64, len(a.names))
	// Score may read values that PreFilter of the same plugin wrote. The verb filter has already
	// reported rejections of PreFilter.
	if _, err := c.preFilter(func(p *served) bool { return p.score != nil }); err != nil {
		return nil, err
	}
	all, err := c.nodesOf(a)
	if err != nil {
		return nil, err
	}
	known, infos := knownNodes(all)
	sums, weights := make([]int64, len(infos)), int64(0)
	for _, p := range c.policies {
		if p.score == nil || len(infos) == 0 {
			continue
		}
		of, err := c.scoresOf(p, infos)
		if err != nil {
			return nil, err
		}
		if of == nil {
			continue
		}
		weights += p.weight
		for i := range of {
			sums[i] += p.weight * min(max(of[i].Score, scheduler.MinNodeScore), scheduler.MaxNodeScore)
		}
	}
	if weights == 0 {
		return scores, nil
	}
	for i, sum := range sums {
		full := weights * scheduler.MaxNodeScore
		scores[known[i]] = (sum*extenderv1.MaxExtenderPriority + full/2) / full
	}
	return scores, nil
}

// knownNodes returns the known nodes and their indexes in the request.
func knownNodes(all []scheduler.NodeInfo) (at []int, known []scheduler.NodeInfo) {
	at, known = make([]int, 0, len(all)), make([]scheduler.NodeInfo, 0, len(all))
	for i, info := range all {
		if info != nil {
			at, known = append(at, i), append(known, info)
		}
	}
	return at, known
}

// scoresOf returns one policy's scores, nil if it skips.
func (c *call) scoresOf(p *served, infos []scheduler.NodeInfo) ([]scheduler.NodeScore, error) {
	skip := false
	if p.preScore != nil {
		err := c.guarded(p, func() error {
			status := p.preScore.PreScore(c.ctx, c.state, c.pod, infos)
			if skip = status.Code() == scheduler.CodeSkip; skip {
				return nil
			}
			return failure(p, "PreScore", status)
		})
		if err != nil || skip {
			return nil, err
		}
	}
	scores := make([]scheduler.NodeScore, len(infos))
	err := c.each(p, len(infos), func(i int) error {
		name := infos[i].Node().Name
		score, status := p.score.Score(c.ctx, c.state, c.pod, infos[i])
		if !status.IsSuccess() {
			return failure(p, "Score of node "+name, status)
		}
		scores[i] = scheduler.NodeScore{Name: name, Score: score}
		return nil
	})
	if err != nil || p.normalize == nil {
		return scores, err
	}
	return scores, c.guarded(p, func() error {
		return failure(p, "NormalizeScore", p.normalize.NormalizeScore(c.ctx, c.state, c.pod, scores))
	})
}
