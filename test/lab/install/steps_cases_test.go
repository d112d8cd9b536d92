//go:build linux && (cases || faults || labs)

package install

import (
	"slices"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/labs"
)

func TestDeployKilledAfterApplyConvergesWhenRunAgain(t *testing.T) {
	convergesAfterKill(t, labs.Shared(t, "kubeadm"), "apply")
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
