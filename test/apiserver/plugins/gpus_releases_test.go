//go:build linux && releases

package plugins

import "testing"

func devicesAfterRestart(t *testing.T, s subject) {
	x := startGPUs(t, s, "restart", 1)
	x.create(t, x.pod("first", amounts{gpuMilli: "700"}))
	first := x.device(t, "first")
	x.scheduler.Kill()
	x.scheduler.Start()
	x.create(t, x.pod("whole", amounts{gpuMilli: "1000"}))
	if second := x.device(t, "whole"); second == first {
		t.Errorf("both pods are on %q", first)
	}
	x.create(t, x.pod("plain", nil))
	if got := x.device(t, "plain"); got != "0 " {
		t.Errorf("a pod without GPUs: %q", got)
	}
}
