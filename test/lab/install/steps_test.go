//go:build linux

package install

import (
	"strings"

	"github.com/pmk-sched/pmk-sched/test/internal/labs"
)

// deploySteps are the steps of a deployment, as they are printed.
var deploySteps = []string{
	"inspect the cluster", "preflight checks", "lock", "check configuration", "save revision", "apply",
	"wait until stable", "mark deployed", "prune",
}

// passedSteps reads the names of the finished steps from the progress of a deployment.
func passedSteps(stderr string) []string {
	var steps []string
	for line := range strings.Lines(stderr) {
		if step, ok := labs.PassedStep(line); ok {
			steps = append(steps, step)
		}
	}
	return steps
}
