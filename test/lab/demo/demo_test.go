//go:build linux && (cases || faults || labs)

// Package demo runs the demo that the README shows first.
package demo

import (
	"os"
	"os/exec"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

func TestMain(m *testing.M) { os.Exit(labs.Main(m)) }

// The demo uses a lab that is up already, as it does when it is run a second time; its lab uses the
// layout of PMK.
func TestDemoShowsThatACustomSchedulerBindsAPod(t *testing.T) {
	n := labs.Shared(t, "pmk")
	t.Run("preset", func(t *testing.T) {
		show(t, n, "demo").Prints(t, "--preset binpack")
	})
	t.Run("plugin", func(t *testing.T) {
		show(t, n, "demo-plugin", "WITH=builtin:timestamp").Prints(t, "--with builtin:timestamp", "Timestamp")
	})
}

// show runs the demo, which deploys a scheduler of the name.
func show(t *testing.T, n *labs.Node, name string, env ...string) run.Result {
	t.Helper()
	n.UninstallLater(t, name)
	demo := exec.CommandContext(run.Context(t), "hack/demo.sh")
	demo.Dir = run.Root()
	demo.Env = append(append(os.Environ(), "LAB="+n.Name, "NAME="+name, labs.EnvStableFor+"=1s"), env...)
	result := run.Command(t, demo).OK(t)
	result.Prints(t,
		"layout pmk", "kubescheduler.config.k8s.io/v1beta3", "Deployment/kube-system/"+name+" created",
		"bound by   "+name, "k8s-master-", name+"-",
		"schedulerName: "+name, "lab down --name "+n.Name, "lab exec --name "+n.Name)
	return result
}
