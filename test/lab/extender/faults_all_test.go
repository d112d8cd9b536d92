//go:build linux && faults

package extender

import (
	"fmt"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

func TestFaultRequiredExtenderThatIsNotReachedIsUndone(t *testing.T) {
	notReached(t, connect(t, labs.Shared(t, "kubeadm")), false)
}

func TestFaultStatusReportsAnExtenderThatIsNotReached(t *testing.T) {
	n := connect(t, labs.Exclusive(t, "kubeadm")) // others see its status too
	n.Load(t, imageV1, "--extender")
	file := run.WriteFile(t, "pmk-sched.yaml", fmt.Sprintf(unreachableFile, imageV1, true))
	n.extender(t, "deploy", "-f", file, "--no-rollback") // no scheduler that it could be proven with
	n.PMKSched(t, "status").Fails(t, 3,
		"extender unreachable in namespace kube-system: the API server does not reach its pods")
	n.extender(t, "uninstall", "--name", "unreachable", "--yes")
	n.PMKSched(t, "status").OK(t)
}
