package session

import (
	"fmt"

	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/preflight"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// problemCheck is the name of the checks for known problems.
const problemCheck = "known-problem"

// knownProblems returns a warning for each known problem of the plan's release that its scheduler meets, or one passed check.
func knownProblems(plan *deploy.Plan) ([]preflight.Outcome, error) {
	usage, err := usageOf(plan)
	if err != nil {
		return nil, err
	}
	var outcomes []preflight.Outcome
	for _, known := range inspect.ProblemsOf(plan.Namespace+"/"+plan.Name, plan.Release, usage) {
		outcomes = append(outcomes, preflight.Outcome{
			Name: problemCheck, Description: fmt.Sprintf("%s of %s does not matter", known.Issue, known.Release), Status: preflight.Warned, Detail: known.String(),
		})
	}
	if len(outcomes) == 0 {
		outcomes = append(outcomes, preflight.Outcome{
			Name: problemCheck, Description: fmt.Sprintf("no known problem of %s matters", plan.Release), Status: preflight.Passed,
		})
	}
	return outcomes, nil
}

// usageOf returns the features that the scheduler of a plan uses and that known problems depend on.
func usageOf(plan *deploy.Plan) (versions.Usage, error) {
	configuration := plan.Scheduler.Configuration
	usage, err := profiles.Usage(configuration.YAML, plan.Release)
	if err != nil {
		return usage, err
	}
	if len(configuration.Policy) > 0 {
		legacy, err := profiles.Usage(configuration.Policy, plan.Release)
		if err != nil {
			return usage, err
		}
		usage.Extenders, usage.WholeNodes = usage.Extenders || legacy.Extenders, usage.WholeNodes || legacy.WholeNodes
	}
	usage.Gates = plan.Gates()
	return usage, nil
}
