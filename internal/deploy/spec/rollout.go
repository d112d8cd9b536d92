package spec

import (
	"strconv"
	"strings"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// rollout returns the rollout with the steps and gates of the flags in place of its own.
func (f Flags) rollout(current *v1alpha1.Rollout) (*v1alpha1.Rollout, error) {
	if len(f.Steps)+len(f.Gates) == 0 {
		return current, nil
	}
	made := v1alpha1.Rollout{}
	if current != nil {
		made = *current
	}
	if len(f.Steps) > 0 {
		made.Steps = nil
	}
	for _, text := range f.Steps {
		share, err := strconv.Atoi(strings.TrimSuffix(text, "%"))
		if err != nil {
			return nil, problem.Invalidf("write --steps 1%,10%,50%,100%", "invalid --steps %q: must be percentages", text)
		}
		made.Steps = append(made.Steps, share)
	}
	if len(f.Gates) > 0 {
		made.Gates = f.Gates
	}
	return &made, nil
}

// Rollout returns the rollout, or one with the defaults if the file has none, and whether there is
// a route for it.
func (s *Spec) Rollout() (r v1alpha1.Rollout, routes bool) {
	if s.request.Spec.Rollout != nil {
		r = *s.request.Spec.Rollout
	}
	return r, s.request.Spec.Route != nil
}

// AtStep returns the spec at a step of a rollout: with a share of its route, and the state of the
// rollout. The spec has a route.
func (s *Spec) AtStep(share int, state *v1alpha1.RolloutState) *Spec {
	other := *s
	other.request = s.request.DeepCopy()
	rollout, _ := s.Rollout()
	rollout.State = state
	other.request.Spec.Route.Share, other.request.Spec.Rollout = &share, &rollout
	return &other
}
