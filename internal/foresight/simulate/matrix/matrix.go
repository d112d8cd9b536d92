// Package matrix collects the results from many simulations, each for one scheduler on one snapshot
// in one scenario, and runs them on a cluster as an indexed Job: [Job] describes it, a [Runner]
// creates it, collects the results and deletes it. A pod writes its simulation's result to its log.
package matrix

import (
	"errors"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
)

// Result is the result of all simulations. Simulations with the same snapshot and scenario follow
// each other.
type Result struct {
	Cells []Cell `json:"cells"`
}

// Cell is one simulation.
type Cell struct {
	Snapshot  string `json:"snapshot"`
	Scenario  string `json:"scenario"`
	Scheduler string `json:"scheduler"`
	Outcome
}

// Outcome is a simulation's result, or why there is none.
type Outcome struct {
	Result *report.Report `json:"result,omitempty"`
	Error  string         `json:"error,omitempty"`
	Hints  []string       `json:"hints,omitempty"`
}

// newOutcome returns a simulation's outcome.
func newOutcome(result *report.Report, err error) Outcome {
	if err != nil {
		return Outcome{Error: err.Error(), Hints: problem.Hints(err)}
	}
	return Outcome{Result: result}
}

// err returns the outcome's error, or nil if it has a result.
func (o Outcome) err() error {
	if o.Error == "" {
		return nil
	}
	err := errors.New(o.Error)
	for _, hint := range o.Hints {
		err = problem.WithHint(err, hint)
	}
	return err
}

// String names the snapshot, the scenario and the scheduler.
func (c Cell) String() string {
	return strings.Join([]string{c.Snapshot, c.Scenario, c.Scheduler}, ", ")
}
