//go:build linux && (cases || faults || labs)

package install

import (
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/labs"
)

// A scheduler that crashes, on a real kubelet: deploy prints its last log lines and restores the
// deployed one.
func TestDeployOfACrashingSchedulerShowsItsLogAndRestoresTheFormer(t *testing.T) {
	n, name := labs.Shared(t, "pmk"), labs.SchedulerName(t)
	image := n.Image(t)
	n.Deploy(t, name, image)
	n.TryDeploy(t, name, n.Faulty(t, "crash", labs.Release)).Fails(t, 1, "this scheduler ends at once",
		"exited with code 7")
	hasImage(t, n, name, image)
	n.PMKSched(t, "verify", "--name", name).OK(t)
}

// hasImage fails the test unless the Deployment of a scheduler uses the image.
func hasImage(t *testing.T, n *labs.Node, name, want string) {
	t.Helper()
	if got := n.Kubectl(t, "get", "deployment", name, "-n", "kube-system", "-o",
		"jsonpath={.spec.template.spec.containers[0].image}"); got != want {
		t.Errorf("the image is %q, want %q", got, want)
	}
}
