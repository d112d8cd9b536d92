//go:build linux

package install

import (
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/labs"
)

// A preset needs no build: the scheduler gets the image that the cluster's default scheduler runs.
// A scheduler with a named image does not lose it.
func TestPresetIsDeployedWithoutAnImageOfItsOwn(t *testing.T) {
	n, name := labs.Shared(t, "pmk"), labs.SchedulerName(t)
	own := n.Kubectl(t, "get", "pods", "-n", "kube-system", "-l", "!app.kubernetes.io/managed-by", "-o",
		`jsonpath={.items[*].spec.containers[?(@.name=="kube-scheduler")].image}`)
	n.Deploy(t, name, "", "--preset", "binpack")
	if got := n.Kubectl(t, "get", "deployment", name, "-n", "kube-system", "-o",
		"jsonpath={.spec.template.spec.containers[0].image}"); got != own {
		t.Errorf("the image is %q, want %q", got, own)
	}
	n.PMKSched(t, "verify", "--name", name).OK(t)
	n.TryDeploy(t, name, n.Image(t)).OK(t)
	n.TryDeploy(t, name, "", "--preset", "spread").Fails(t, 2, "--image is required",
		"deployed with an image that was named")
}
