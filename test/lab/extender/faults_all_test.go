//go:build linux && faults

package extender

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// unreachableFile has an extender whose pods are on simulated nodes, which report them as ready.
const unreachableFile = `apiVersion: pmk-sched.io/v1alpha1
kind: CustomScheduler
metadata: {name: any}
spec:
  extenders:
  - name: unreachable
    image: %s
    ignorable: %t
    nodeSelector: {type: kwok}
    policies: [{name: BlockAll, args: {namespaces: [none]}}]
`

// An extender that no scheduler reaches is not deployed: schedulers get their former configuration
// back, and the error names the cause.
func TestFaultExtenderThatIsNotReachedIsUndone(t *testing.T) {
	n := connect(t, labs.Shared(t, "kubeadm"))
	for _, ignorable := range []bool{true, false} {
		t.Run(fmt.Sprintf("ignorable=%t", ignorable), func(t *testing.T) { notReached(t, n, ignorable) })
	}
}

// notReached deploys an extender that the scheduler cannot reach, and checks that the deployment is
// reverted.
func notReached(t *testing.T, n *node, ignorable bool) {
	t.Helper()
	const name = "alone"
	n.Load(t, imageV1, "extender")
	n.Deploy(t, name, n.Image(t))
	configured := func() string {
		return n.Kubectl(t, "get", "deployments", "-n", "kube-system", "-l=app.kubernetes.io/instance="+name, "-o",
			"jsonpath={.items[*].spec}")
	}
	before := configured()
	file := run.WriteFile(t, "pmk-sched.yaml", fmt.Sprintf(unreachableFile, imageV1, ignorable))
	got := n.PMKSched(t, extenderArgs("deploy", "-f", file, "--for", name)...)
	got.Fails(t, 1, "scheduler alone does not reach extender unreachable at https://",
		"check that the extender's pods are on nodes with a working pod network")
	if diff := cmp.Diff(before, configured()); diff != "" {
		t.Errorf("the scheduler changed (-before +after):\n%s", diff)
	}
	if left := n.left(t, "unreachable"); left != "" {
		t.Errorf("left of the extender: %s", left)
	}
	n.PMKSched(t, "verify", "--name", name).OK(t)
}

func TestFaultStatusReportsAnExtenderThatIsNotReached(t *testing.T) {
	n := connect(t, labs.Exclusive(t, "kubeadm")) // others see its status too
	n.Load(t, imageV1, "extender")
	file := run.WriteFile(t, "pmk-sched.yaml", fmt.Sprintf(unreachableFile, imageV1, true))
	n.extender(t, "deploy", "-f", file, "--no-rollback") // no scheduler that it could be proven with
	n.PMKSched(t, "status").Fails(t, 3,
		"extender unreachable in namespace kube-system: the API server does not reach its pods")
	n.extender(t, "uninstall", "--name", "unreachable", "--yes")
	n.PMKSched(t, "status").OK(t)
}
