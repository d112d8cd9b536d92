//go:build linux && (cases || faults || labs)

// Package demo runs the demo that the README shows first.
package demo

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

func TestMain(m *testing.M) { os.Exit(labs.Main(m)) }

// The demo uses a lab that is up already, as it does when it is run a second time; its lab uses the
// layout of PMK. A scheduler of a preset comes first, which nobody builds, then one with a plugin.
func TestDemoShowsThatCustomSchedulersBindAPod(t *testing.T) {
	n := labs.Shared(t, "pmk")
	const preset, name = "binpack", "demo-plugin"
	n.UninstallLater(t, preset)
	n.UninstallLater(t, name)
	demo := exec.CommandContext(run.Context(t), "hack/demo.sh")
	demo.Dir = run.Root()
	demo.Env = append(os.Environ(), "LAB="+n.Name, "NAME="+name, labs.EnvStableFor+"=1s")
	result := run.Command(t, demo).OK(t)
	result.Prints(t,
		"layout pmk", "kubescheduler.config.k8s.io/v1beta3", "Deployment/kube-system/"+preset+" created",
		"bound by   "+preset, "--branch "+n.Release+" --with builtin:timestamp", "Timestamp",
		"Deployment/kube-system/"+name+" created", "bound by   "+name, name+"-",
		"s  preset binpack, without a build, and its first pod", "s  build "+n.Release+" with builtin:timestamp",
		"schedulerName: "+preset, "lab down --name "+n.Name, "lab exec --name "+n.Name)
	first, second := strings.Index(result.Stdout, "bound by   "+preset), strings.Index(result.Stdout, "--busybox")
	if first > second {
		t.Errorf("the build, at %d, comes before the pod of the preset, at %d", second, first)
	}
}
