//go:build linux && labs

package nodes

import (
	"os"
	"os/exec"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// `make demo LAYOUT=kubeadm MASTERS=3`, which docs/lab.md shows, starts the cluster and builds on
// each of its nodes. It deploys three replicas.
func TestDemoOnThreeControlPlaneNodesOfKubeadm(t *testing.T) {
	const lab = "demo-kubeadm"
	t.Cleanup(func() { run.PMKLab(t, "down", "--name", lab).OK(t) })
	demo := exec.CommandContext(run.Context(t), "hack/demo.sh")
	demo.Dir = run.Root()
	demo.Env = append(os.Environ(), "LAB="+lab, "LAYOUT=kubeadm", "MASTERS=3", labs.EnvStableFor+"=1s")
	run.Command(t, demo).OK(t).Prints(t, "layout kubeadm", "3 with label node-role.kubernetes.io/control-plane",
		"on node "+lab+":", "on node "+lab+"-2:", "on node "+lab+"-3:", "Deployment/kube-system/my-scheduler created",
		"replicas 3: one for each control-plane node", "bound by   my-scheduler", "lab down --name "+lab)
}
