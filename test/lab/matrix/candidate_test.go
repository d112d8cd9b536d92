//go:build linux && labs

package matrix

import (
	"context"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// In a cluster with coordinated leader election the default scheduler is a candidate for its lease,
// and a second scheduler is not: one with the feature gate on registers for that lease
// independently of its configuration.
func TestSecondSchedulerIsNoCandidateForTheDefaultOnesLease(t *testing.T) {
	n := up(t, subject{release: "v1.34.2", layout: "kubeadm", api: "v1"})
	const gate = "--feature-gates=CoordinatedLeaderElection=true"
	n.AddFlags(t, "kube-apiserver", gate, "--runtime-config=coordination.k8s.io/v1beta1=true")
	n.AddFlags(t, "kube-scheduler", gate)
	run.Eventually(t, "the default scheduler becomes a candidate", func(context.Context) (bool, string) {
		seen := n.candidates(t)
		return strings.Contains(seen, "kube-scheduler"), seen
	})
	n.build(t)
	n.PMKSched(t, "deploy", "--name", "my-scheduler", "--image", n.image()).OK(t)
	n.PMKSched(t, "verify", "--name", "my-scheduler").OK(t)
	if list := n.candidates(t); strings.Contains(list, "my-scheduler") || strings.Count(list, "kube-scheduler") != 1 {
		t.Errorf("the candidates, each with its lease:\n%s", list)
	}
	if holder := n.lease(t, "kube-scheduler").Spec.HolderIdentity; !strings.HasPrefix(holder, n.Name+"_") {
		t.Errorf("the default scheduler's lease is held by %q", holder)
	}
	n.CleanLog(t, "my-scheduler")
	n.Uninstall(t, "my-scheduler")
}

// candidates lists the candidates of every lease; "" while there are none.
func (n node) candidates(t *testing.T) string {
	t.Helper()
	return n.Exec(t, "kubectl", "get", "leasecandidates", "-n", "kube-system",
		"-o", `jsonpath={range .items[*]}{.metadata.name} {.spec.leaseName}{"\n"}{end}`).Stdout
}
