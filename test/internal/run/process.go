//go:build linux

package run

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// clockTick is the unit of times in /proc/PID/stat (sysconf(_SC_CLK_TCK), 100 on every Linux).
const clockTick = 10 * time.Millisecond

// CPUOf returns the processor's time that a running process took, of the program and of the kernel.
func CPUOf(t testing.TB, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	// After the name in parentheses come the state and, as fields 14 and 15 of all, the time of the
	// program and of the kernel for it.
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	var own, kernel int64
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &own, &kernel); err != nil {
		t.Fatal(err)
	}
	return time.Duration(own+kernel) * clockTick
}

// MemoryOf returns a value of /proc/PID/status in MiB: VmRSS is the resident memory, VmHWM its
// peak.
func MemoryOf(t testing.TB, pid int, value string) float64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), value+":")
	var kilobytes float64
	if _, err := fmt.Sscan(rest, &kilobytes); err != nil {
		t.Fatal(err)
	}
	return kilobytes / 1024
}
