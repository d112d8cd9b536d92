//go:build linux && labs

// Package arbiter tests two schedulers on nodes with real kubelets, without the arbiter and with
// it.
package arbiter

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/controller"
	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

const (
	second = "second"
	self   = "localhost/pmk-sched:test"
	file   = "/root/controller.yaml"
	hook   = "validatingwebhookconfiguration/pmk-sched-arbiter"
)

func TestMain(m *testing.M) { os.Exit(labs.Main(m)) }

func TestTwoSchedulersWithTheArbiter(t *testing.T) {
	n := labs.Start(t, labs.Options{Release: "v1.24.3", Layout: lab.LayoutKubeadm, Kubelets: 2})
	n.Load(t, self, "self")
	for _, worker := range n.Workers() {
		n.On(t, worker).Load(t, self, "self")
	}
	image := n.Image(t)
	n.Deploy(t, second, image)
	n.PMKSched(t, "controller", "render", "--image", self, "--admission", "arbiter", "--to-file", file).OK(t)
	n.Kubectl(t, "apply", "-f", file)
	for _, name := range []string{controller.Name, "pmk-sched-admission"} {
		n.Kubectl(t, "wait", "--for=condition=Available", "--timeout=3m", "-n", controller.DefaultNamespace, "deployment/"+name)
	}
	t.Run("KubeletsRejectNoPod", func(t *testing.T) { kubeletsRejectNoPod(t, n) })
	t.Run("PreemptionEnds", func(t *testing.T) { preemptionEnds(t, n, image) })
}

// unregister lets the API server ask no arbiter.
func unregister(t *testing.T, n *labs.Node) {
	t.Helper()
	n.Kubectl(t, "delete", hook)
	time.Sleep(time.Second) // API servers watch webhook configurations
}

// register lets the API server ask the arbiter.
func register(t *testing.T, n *labs.Node) {
	t.Helper()
	n.Kubectl(t, "apply", "-f", file)
	run.Eventually(t, "the API server trusts the arbiter", func(context.Context) (bool, string) {
		bundle := n.Kubectl(t, "get", hook, "-o", "jsonpath={.webhooks[0].clientConfig.caBundle}")
		return bundle != "", bundle
	})
	time.Sleep(time.Second)
}
