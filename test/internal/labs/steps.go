//go:build linux

package labs

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/test/terminaltest"
)

// PassedStep reads the name of a finished step from a line of progress: `✓ name (1.2s)`, or
// `✓ name` for a short one.
func PassedStep(line string) (string, bool) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(line), "✓ ")
	if !ok {
		return "", false
	}
	if i := strings.LastIndex(rest, " ("); i > 0 {
		rest = rest[:i]
	}
	return rest, true
}

// AtStep runs pmk-sched on the node and calls do as soon as the given step has passed. do may stop
// or kill the process, whose ID it is given.
func (n *Node) AtStep(t testing.TB, step string, do func(pid int), args ...string) run.Result {
	t.Helper()
	program := run.Program(t)
	cmd := n.Command(run.Context(t), t, append([]string{program}, args...)...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stdout, printed bytes.Buffer
	cmd.Stdout = &stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines, done := bufio.NewScanner(stderr), false
	for lines.Scan() {
		printed.WriteString(lines.Text() + "\n")
		if passed, ok := PassedStep(lines.Text()); ok && passed == step && !done {
			done = true
			do(child(program, cmd.Process.Pid))
		}
	}
	_ = cmd.Wait() // its status is the result
	if !done {
		t.Fatalf("the step %q did not pass:\n%s", step, printed.String())
	}
	return run.Result{Stdout: stdout.String(), Stderr: printed.String(), Code: cmd.ProcessState.ExitCode()}
}

// HangUpAtStep runs pmk-sched on the node, on a new terminal that is closed as soon as a step has
// passed, as when an SSH session is lost. It returns when pmk-sched has ended; its output to the
// closed terminal is lost.
func (n *Node) HangUpAtStep(t testing.TB, step string, args ...string) {
	t.Helper()
	terminaltest.ReceiveSignals(t)
	user, program := terminaltest.Open(t)
	cmd := n.Command(run.Context(t), t, append([]string{"setsid", "--ctty", "--wait", run.Program(t)}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
	if err := errors.Join(cmd.Start(), program.Close()); err != nil {
		t.Fatal(err)
	}
	var printed strings.Builder
	lines, done := bufio.NewScanner(user), false
	for !done && lines.Scan() {
		line := terminaltest.Shown(lines.Text())
		printed.WriteString(line + "\n")
		passed, ok := PassedStep(line)
		done = ok && passed == step
	}
	if err := user.Close(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // the state of the node is the result
	if !done {
		t.Fatalf("the step %q did not pass:\n%s", step, printed.String())
	}
}

// KillAtStep kills pmk-sched as soon as a step has passed.
func (n *Node) KillAtStep(t testing.TB, step string, args ...string) {
	t.Helper()
	if r := n.AtStep(t, step, Signal(t, syscall.SIGKILL), args...); r.Code == 0 {
		t.Fatalf("the command was not killed: %s", r)
	}
}

// child finds the program that `lab exec` runs: the last of its line of descendants.
func child(program string, pid int) int {
	found := pid
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range threads {
		children, _ := os.ReadFile(file)
		for text := range strings.FieldsSeq(string(children)) {
			var id int
			if _, err := fmt.Sscan(text, &id); err != nil {
				continue
			}
			below := child(program, id)
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", below))
			if strings.HasPrefix(string(line), program+"\x00") {
				found = below
			}
		}
	}
	return found
}

// Signal returns a function that sends a signal to a process.
func Signal(t testing.TB, s syscall.Signal) func(pid int) {
	return func(pid int) {
		if err := syscall.Kill(pid, s); err != nil {
			t.Errorf("signal process %d: %v", pid, err)
		}
	}
}
