// Package demo runs what the README shows first.
package demo

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestDemoShowsACustomSchedulerTakingItsFirstPod(t *testing.T) {
	const lab = "demo-test"
	t.Cleanup(func() {
		if out, err := exec.Command("../../../bin/pmk-sched", "lab", "down", "--name", lab).CombinedOutput(); err != nil {
			t.Errorf("take the demo's lab down: %v\n%s", err, out)
		}
	})
	demo := exec.CommandContext(t.Context(), "make", "-C", "../../..", "demo")
	demo.Env = append(os.Environ(), "LAB="+lab)
	out, err := demo.CombinedOutput()
	if err != nil {
		t.Fatalf("make demo: %v\n%s", err, out)
	}
	for what, text := range map[string]string{
		"what the master is":               "layout pmk",
		"the config API":                   "kubescheduler.config.k8s.io/v1beta3",
		"that the Deployment was made":     "Deployment/kube-system/my-scheduler created",
		"who bound the pod":                "bound by   my-scheduler",
		"the default scheduler's pod":      "k8s-master-",
		"the custom scheduler's pod":       "my-scheduler-",
		"how to use it":                    "schedulerName: my-scheduler",
		"how to take it down":              "lab down --name " + lab,
		"how to look around on the master": "lab exec --name " + lab,
	} {
		if !strings.Contains(string(out), text) {
			t.Errorf("the demo does not show %s (%q):\n%s", what, text, out)
		}
	}
}
