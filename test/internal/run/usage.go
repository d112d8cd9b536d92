//go:build linux

package run

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// envMeasure names the file into which a process that [Measure] started writes the usage of its
// command.
const envMeasure = "PMK_SCHED_TEST_MEASURE"

// Usage is the resource usage of a process: CPU time in seconds, and peak memory in MiB.
type Usage struct{ CPU, MiB float64 }

// Measure runs a command in a separate process. A process inherits the peak memory of its parent
// (getrusage(2), ru_maxrss, is kept across execve), and the peak of a test with thousands of
// objects would hide the command's: a small copy of the test starts it. TestMain must call
// [Measured] first.
func Measure(t testing.TB, args ...string) (Result, Usage) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "usage")
	cmd := exec.CommandContext(Context(t), self, args...)
	cmd.Env = append(os.Environ(), envMeasure+"="+file)
	result := Command(t, cmd)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("measure %v: %v: %s", args, err, result)
	}
	return result, Decode[Usage](t, string(text))
}

// Measured runs the command of [Measure] and ends the process, if it started this one.
func Measured() {
	file := os.Getenv(envMeasure)
	if file == "" {
		return
	}
	runtime.LockOSThread() // the command ends with the thread that started it
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err := cmd.Run()
	if cmd.ProcessState == nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	used := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	text, err := json.Marshal(Usage{
		// Linux counts in KiB
		CPU: (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), MiB: float64(used.Maxrss) / 1024,
	})
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(cmd.ProcessState.ExitCode())
}
