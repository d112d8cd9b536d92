//go:build linux

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
	const name = "demo"
	n := labs.Shared(t, "pmk")
	n.UninstallLater(t, name)
	demo := exec.CommandContext(run.Context(t), "hack/demo.sh")
	demo.Dir, demo.Env = run.Root(), append(os.Environ(), "LAB="+n.Name, "NAME="+name, labs.EnvStableFor+"=1s")
	run.Command(t, demo).OK(t).Prints(t,
		"layout pmk", "kubescheduler.config.k8s.io/v1beta3", "Deployment/kube-system/"+name+" created",
		"bound by   "+name, "k8s-master-", name+"-",
		"schedulerName: "+name, "lab down --name "+n.Name, "lab exec --name "+n.Name)
}
