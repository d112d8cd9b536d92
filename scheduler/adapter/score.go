package adapter

import "github.com/pmk-sched/pmk-sched/scheduler"

// rawScore returns a node's score. If the plugin normalizes its scores, they may be any numbers
// before.
func (h *Host) rawScore(score int64) int64 {
	if h.normalizes {
		return score
	}
	return h.bounded(score)
}

// bounded returns the score or the bound that is nearest to it: the framework ends the attempt of
// each pod for which a plugin returns another score for any node
// (pkg/scheduler/framework/runtime/framework.go). The first such score of a plugin is logged.
func (h *Host) bounded(score int64) int64 {
	bound := scheduler.MaxNodeScore
	switch {
	case score < scheduler.MinNodeScore:
		bound = scheduler.MinNodeScore
	case score <= scheduler.MaxNodeScore:
		return score
	}
	h.unbounded.Do(func() {
		h.log.Info(0, "A plugin returned a score out of bounds; the nearest bound is used, now and later",
			"plugin", h.name, "score", score, "bound", bound)
	})
	return bound
}
