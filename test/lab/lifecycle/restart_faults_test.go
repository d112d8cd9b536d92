//go:build linux && faults

package lifecycle

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

func TestFaultPMKLabSurvivesRestartsOfItsAPIServerAndItsNode(t *testing.T) {
	n := labs.Exclusive(t, lab.LayoutPMK)
	// A kubelet that has just started ignores the removal of a static pod until it has read the
	// pods of its node from the API server. One that runs such a pod has read them.
	runPod(t, n.Lab, "restarted", "node-role.kubernetes.io/master")
	restartAPIServer(t, n)
	n.Kubectl(t, "get", "nodes")
	if err := n.Lab.RestartNode(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.Kubectl(t, "wait", "--for=condition=Ready", "--timeout=5m", "pod/restarted")
	n.Kubectl(t, "delete", "pod", "restarted")
}

// restartAPIServer removes the static pod with the API server, the controller manager and the
// default scheduler of PMK, waits until the API server refuses connections, returns the static pod
// and waits until the API server is ready.
func restartAPIServer(t *testing.T, n *labs.Node) {
	t.Helper()
	manifest := n.Lab.StaticPods()
	removed := filepath.Join(n.Lab.Dir(), "removed.yaml")
	ready := func() run.Result { return n.Exec(t, "kubectl", "get", "--raw", "/readyz", "--request-timeout=5s") }
	if err := os.Rename(manifest, removed); err != nil {
		t.Fatal(err)
	}
	run.Eventually(t, "the API server has stopped", func(context.Context) (bool, string) {
		r := ready()
		return r.Code != 0 && strings.Contains(r.Stderr, "refused"), r.String()
	})
	if err := os.Rename(removed, manifest); err != nil {
		t.Fatal(err)
	}
	run.Eventually(t, "the API server is ready", func(context.Context) (bool, string) {
		r := ready()
		return r.Code == 0, r.String()
	})
}
