//go:build linux && faults

package install

import (
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/labs"
)

func TestFaultDeployKilledAfterAnyStepConvergesWhenRunAgain(t *testing.T) {
	for i, step := range deploySteps[:len(deploySteps)-1] {
		t.Run(step, func(t *testing.T) { convergesAfterKill(t, labs.Shared(t, layouts[i%len(layouts)].layout), step) })
	}
}

// The API server is killed while the deployment waits for the scheduler's pods; the kubelet
// restarts it. The one deployment that was started goes through.
func TestFaultDeploySurvivesARestartOfTheAPIServer(t *testing.T) {
	n, name := labs.Exclusive(t, "kubeadm"), labs.SchedulerName(t)
	image := n.Image(t)
	n.UninstallLater(t, name)
	restarts := func() string {
		return n.Kubectl(t, "get", "pods", "-n", "kube-system", "-l", "component=kube-apiserver", "-o",
			"jsonpath={.items[*].status.containerStatuses[*].restartCount}")
	}
	before := restarts()
	deployed := n.AtStep(t, "apply", func(int) {
		n.Shell(t, "pkill -KILL -x --ns $$ --nslist net kube-apiserver")
	}, n.DeployArgs(t, name, image)...)
	if deployed.Code != 0 {
		t.Errorf("the deployment did not survive: %s", deployed)
	}
	if after := restarts(); strings.TrimSpace(after) == before {
		t.Errorf("the API server was not restarted: %q before, %q after", before, after)
	}
	n.PMKSched(t, "verify", "--name", name).OK(t)
}
