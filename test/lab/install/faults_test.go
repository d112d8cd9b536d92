//go:build linux && faults

package install

import (
	"context"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
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
	run.Eventually(t, "the kubelet reports the restart of the API server", func(context.Context) (bool, string) {
		after := restarts()
		return after != before, after
	})
	n.PMKSched(t, "verify", "--name", name).OK(t)
}

// With --no-rollback a failed deployment stays, so that the user can inspect it.
func TestFaultDeployWithoutRollbackLeavesWhatFailed(t *testing.T) {
	n, name := labs.Shared(t, "kubeadm"), labs.SchedulerName(t)
	image := n.Image(t)
	n.Deploy(t, name, image)
	crash := n.Faulty(t, "crash", labs.Release)
	n.TryDeploy(t, name, crash, "--no-rollback").Fails(t, 1, "this scheduler ends at once")
	hasImage(t, n, name, crash)
}

// A deployment that meets another of the same name, which holds the lock, ends with an error that
// names the other.
func TestFaultSecondDeployOfOneNameAtTheSameTimeIsRefused(t *testing.T) {
	n, name := labs.Shared(t, "pmk"), labs.SchedulerName(t)
	image := n.Image(t)
	n.UninstallLater(t, name)
	// The second one sees after one renewal of the lock, 3 s, that the first one is alive.
	args := n.DeployArgs(t, name, image, labs.Stable("15s")...)
	first := n.AtStep(t, "apply", func(int) {
		n.PMKSched(t, args...).Fails(t, 1, name, "another")
	}, args...)
	first.OK(t)
	n.PMKSched(t, "verify", "--name", name).OK(t)
}

func TestFaultRollbackRefusesWhatIsNoDeployedRevision(t *testing.T) {
	n, name := labs.Shared(t, "pmk"), labs.SchedulerName(t)
	n.PMKSched(t, "history", "--name", name).Fails(t, 2, name+" has no revisions in namespace kube-system")
	n.PMKSched(t, "rollback", "--name", name).Fails(t, 2, "no deployed revision")
	image := n.Image(t)
	n.Deploy(t, name, image)
	n.TryDeploy(t, name, n.Faulty(t, "crash", labs.Release)).Fails(t, 1, "this scheduler ends at once")
	n.PMKSched(t, "rollback", "--name", name).Fails(t, 2, "no deployed revision that differs")
	n.PMKSched(t, "rollback", "--name", name, "--to", "2").Fails(t, 2, "was never stable")
	n.PMKSched(t, "rollback", "--name", name, "--to", "7").Fails(t, 2, "no revision 7", "it has 1 and 2")

	secret := "pmk-sched-" + name + "-revision-1"
	n.Kubectl(t, "patch", "secret", secret, "-n", "kube-system", "--type=merge", "-p",
		`{"data":{"objects.json.gz":"ZGFtYWdlZA=="}}`)
	n.PMKSched(t, "rollback", "--name", name, "--to", "1").Fails(t, 1, "revision 1 of "+name+" is damaged", secret)
	if got := history(t, n, name); got[0].Status != "damaged" || !strings.Contains(got[0].Reason, secret) {
		t.Errorf("history: %+v", got)
	}
	hasImage(t, n, name, image)
	n.PMKSched(t, "verify", "--name", name).OK(t)
}
