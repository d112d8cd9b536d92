package deploy

import (
	"github.com/pmk-sched/pmk-sched/internal/deploy/preflight"
	"github.com/pmk-sched/pmk-sched/profiles"
)

// autoscalerOutcomes returns a warning for each reason why an autoscaler decides differently from a
// plan's scheduler.
func autoscalerOutcomes(plan *Plan, a profiles.Autoscaler) ([]preflight.Outcome, error) {
	differences, err := profiles.CompareAutoscaler(plan.Scheduler.Configuration.YAML, a)
	if err != nil {
		return nil, err
	}
	var outcomes []preflight.Outcome
	for _, d := range differences {
		outcomes = append(outcomes, preflight.Outcome{
			Name: "autoscaler-" + d.Subject, Description: string(a) + " decides differently: " + d.Subject,
			Status: preflight.Warned, Detail: d.Text, Hint: d.Hint,
		})
	}
	return outcomes, nil
}

// RenderForAutoscaler returns the part of a plan's configuration that an autoscaler reads, and
// notes on the rest.
func RenderForAutoscaler(plan *Plan, a profiles.Autoscaler) (text []byte, notes []string, err error) {
	return profiles.ForAutoscaler(plan.Scheduler.Configuration.YAML, a, plan.Name)
}
