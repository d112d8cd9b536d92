//go:build linux

package lab

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"
)

// On a busy machine a daemon takes long to join its cgroup.
func TestDaemonOutsideItsCgroupHasNotEnded(t *testing.T) {
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		pid  int
		want bool
	}{
		"starting": {os.Getpid(), false},
		"gone":     {gone.Process.Pid, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := host{dir: t.TempDir(), cgroup: "pmk-sched-lab-none"}
			if err := h.create(); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(h.pidFile("kubelet"), fmt.Appendln(nil, c.pid), 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := h.hasEnded("kubelet", time.Now().Add(-time.Minute)); err != nil || got != c.want {
				t.Errorf("ended = %v, %v; want %v", got, err, c.want)
			}
		})
	}
}
