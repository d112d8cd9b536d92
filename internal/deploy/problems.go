package deploy

import (
	"fmt"

	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/deploy/preflight"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// ProblemCheck is the name of the checks for known problems.
const ProblemCheck = "known-problem"

// KnownProblems returns the known problems of the plan's release that its scheduler meets.
func KnownProblems(plan *Plan) ([]inspect.KnownProblem, error) {
	usage, err := usageOf(plan)
	if err != nil {
		return nil, err
	}
	return inspect.ProblemsOf(plan.Namespace+"/"+plan.Name, plan.Release, usage), nil
}

// knownProblems returns a warning for each known problem, or one passed check.
func knownProblems(plan *Plan) ([]preflight.Outcome, error) {
	known, err := KnownProblems(plan)
	if err != nil {
		return nil, err
	}
	var outcomes []preflight.Outcome
	for _, k := range known {
		outcomes = append(outcomes, preflight.Outcome{
			Name: ProblemCheck, Description: fmt.Sprintf("known problem %s of %s", k.Issue, k.Release),
			Status: preflight.Warned, Detail: k.String(),
		})
	}
	if len(outcomes) == 0 {
		outcomes = append(outcomes, preflight.Outcome{
			Name: ProblemCheck, Description: fmt.Sprintf("no known problem of %s affects the configuration", plan.Release),
			Status: preflight.Passed,
		})
	}
	return outcomes, nil
}

// usageOf returns the features that a plan's scheduler uses and that known problems depend on.
func usageOf(plan *Plan) (versions.Usage, error) {
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
