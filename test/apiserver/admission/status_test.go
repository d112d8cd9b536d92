//go:build linux

package admission

import (
	"path/filepath"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/deploy/health"
	"github.com/pmk-sched/pmk-sched/internal/replace"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// status compares the replica that decides, and the one finding about the arbiter if it is not "",
// with the output of `status`.
func (c *cluster) status(t *testing.T, leader, finding string) {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := c.server.WriteKubeconfig(kubeconfig, ""); err != nil {
		t.Fatal(err)
	}
	result := run.PMKSched(t, "status", "--kubeconfig", kubeconfig, "--node-root=none", "-o", "json")
	got := run.Decode[replace.Status](t, result.Stdout)
	a := got.Arbiter
	if a == nil || a.Namespace != "pmk-sched-system" || a.Lease == nil || a.Lease.Holder != leader {
		t.Errorf("got %+v, expected the leader %q", a, leader)
	}
	if finding == "" {
		if len(got.Findings) > 0 {
			t.Errorf("findings %+v", got.Findings)
		}
		return
	}
	if len(got.Findings) != 1 || got.Findings[0].Code != health.ArbiterUndecided ||
		got.Findings[0].Text != "bindings are not checked: "+finding {
		t.Errorf("findings %+v, expected %q", got.Findings, finding)
	}
}
