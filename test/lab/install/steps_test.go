//go:build linux

package install

import (
	"slices"
	"strings"
	"testing"

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

// convergesAfterKill kills a deployment after a step and runs it again: the scheduler then
// schedules, and its objects match the flags.
func convergesAfterKill(t *testing.T, n *labs.Node, step string) {
	t.Helper()
	name, image := labs.SchedulerName(t), n.Image(t)
	args := n.DeployArgs(t, name, image)
	n.UninstallLater(t, name)
	n.KillAtStep(t, step, args...)
	n.PMKSched(t, args...).OK(t)
	n.PMKSched(t, "verify", "--name", name).OK(t)
	diff := slices.DeleteFunc(args, func(arg string) bool { return slices.Contains(labs.Stable("1s"), arg) })
	n.PMKSched(t, append([]string{"diff"}, diff[1:]...)...).OK(t)
}
