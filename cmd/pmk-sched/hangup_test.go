//go:build linux

package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/test/terminaltest"
)

// operationRun is a running program operation.
type operationRun struct {
	*exec.Cmd
	dir string
}

// startOperation starts the program. prefix may be a program that runs it.
func startOperation(t *testing.T, out *os.File, onTerminal bool, prefix ...string) *operationRun {
	t.Helper()
	terminaltest.ReceiveSignals(t)
	dir := t.TempDir()
	argv := append(prefix, "pmk-sched-operation")
	o := &operationRun{Cmd: exec.CommandContext(t.Context(), argv[0], argv[1:]...), dir: dir}
	o.Dir, o.Stdout, o.Stderr = dir, out, out
	if onTerminal {
		o.Stdin, o.SysProcAttr = out, &syscall.SysProcAttr{Setsid: true, Setctty: true}
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "state"), []byte("original"), 0o600), o.Start(),
		out.Close()); err != nil {
		t.Fatal(err)
	}
	return o
}

// pass lets a step pass.
func (o *operationRun) pass(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(o.dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// ends waits for the end of the program and fails the test unless it leaves that state and that
// status.
func (o *operationRun) ends(t *testing.T, state string, status int) {
	t.Helper()
	err := o.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(o.dir, "state")); string(got) != state ||
		o.ProcessState.ExitCode() != status {
		t.Errorf("it ended with %s and left the state %q (%v), want status %d and %q", o.ProcessState, got, err, status,
			state)
	}
}

// readUntil reads the output of a program until a line begins with a text.
func readUntil(t *testing.T, r io.Reader, want string) {
	t.Helper()
	var line []byte
	for next := make([]byte, 1); !strings.HasPrefix(terminaltest.Shown(string(line)), want); line = append(line, next...) {
		if bytes.HasSuffix(line, []byte("\n")) {
			line = nil
		}
		if _, err := r.Read(next); err != nil {
			t.Fatalf("wait for %q after %q: %v", want, line, err)
		}
	}
}

// A terminal that is closed, as by a lost SSH session, stops the operation during any step, and the
// former state is restored.
func TestClosedTerminalUndoesTheOperation(t *testing.T) {
	for i, step := range operationSteps {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			user, program := terminaltest.Open(t)
			o := startOperation(t, program, true)
			o.pass(t, operationSteps[:i]...)
			readUntil(t, user, "… "+step)
			if err := user.Close(); err != nil {
				t.Fatal(err)
			}
			o.pass(t, "undo")
			state := "original"
			if step == "clean up" {
				state = "replaced"
			}
			o.ends(t, state, command.StatusFailure)
		})
	}
}

// Under nohup the operation ends as if the terminal were open.
func TestClosedTerminalDoesNotStopAnOperationThatIgnoresHangups(t *testing.T) {
	for i, step := range operationSteps {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			user, program := terminaltest.Open(t)
			o := startOperation(t, program, true, "sh", "-c", `trap "" HUP; exec "$0"`)
			o.pass(t, operationSteps[:i]...)
			readUntil(t, user, "… "+step)
			if err := user.Close(); err != nil {
				t.Fatal(err)
			}
			o.pass(t, operationSteps[i:]...)
			o.ends(t, "replaced", command.StatusSuccess)
		})
	}
}

// An operation whose reader ends, as in `pmk-sched … 2>&1 | head -1`, continues without output.
func TestClosedPipeDoesNotStopTheOperation(t *testing.T) {
	for i, step := range operationSteps {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			o := startOperation(t, w, false)
			o.pass(t, operationSteps[:i]...)
			for _, passed := range operationSteps[:i] {
				readUntil(t, r, "✓ "+passed)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			o.pass(t, operationSteps[i:]...)
			o.ends(t, "replaced", command.StatusSuccess)
		})
	}
}

// A second SIGINT or SIGTERM ends the undo, a hangup never does: a session that ends sends several,
// and often a SIGTERM.
func TestOnlyASecondInterruptEndsTheUndo(t *testing.T) {
	cases := map[string]struct {
		first syscall.Signal
		more  []syscall.Signal
		state string // "half" if the undo is ended
	}{
		"interrupted":                {syscall.SIGINT, nil, "original"},
		"interrupted twice":          {syscall.SIGINT, []syscall.Signal{syscall.SIGINT}, "half"},
		"interrupted and terminated": {syscall.SIGINT, []syscall.Signal{syscall.SIGTERM}, "half"},
		"interrupted, then hung up":  {syscall.SIGINT, []syscall.Signal{syscall.SIGHUP, syscall.SIGHUP}, "original"},
		"session ends": {syscall.SIGHUP, []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM, syscall.SIGHUP},
			"original"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			o := startOperation(t, w, false)
			o.pass(t, "prepare")
			awaitState(t, o, "half")
			signal := func(s syscall.Signal) {
				if err := o.Process.Signal(s); err != nil {
					t.Error(err)
				}
			}
			signal(tc.first)
			readUntil(t, r, "✗ swap")
			for _, s := range tc.more {
				signal(s)
			}
			status := command.StatusFailure
			if tc.state == "half" {
				status = -1 // ended by the signal
			} else {
				o.pass(t, "undo")
			}
			o.ends(t, tc.state, status)
		})
	}
}

// awaitState waits until the program has written a state.
func awaitState(t *testing.T, o *operationRun, want string) {
	t.Helper()
	for {
		if got, err := os.ReadFile(filepath.Join(o.dir, "state")); err == nil && string(got) == want {
			return
		}
		if err := clock.Sleep(t.Context(), 10*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
}

// A command that only prints ends without a trace when its output is not read, as in `pmk-sched …
// | head -1`.
func TestPrintingToAClosedPipeIsNotAnError(t *testing.T) {
	for _, args := range []string{"--help", "version", "version -o json", "profile list", "profile list -o yaml",
		"profile show binpack", "deploy --help", "completion bash"} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			r, w, err := os.Pipe()
			if err == nil {
				err = r.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
			var stderr bytes.Buffer
			cmd := exec.CommandContext(t.Context(), "pmk-sched", strings.Fields(args)...)
			cmd.Stdout, cmd.Stderr = w, &stderr
			if err := errors.Join(cmd.Run(), w.Close()); err != nil || stderr.Len() > 0 {
				t.Errorf("%v, and it prints %q", err, stderr.String())
			}
		})
	}
}

// A result that cannot be written for another reason is an error: the reader waits for it.
func TestPrintingToAFullDiskIsAnError(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "pmk-sched", "profile", "list")
	cmd.Stdout, cmd.Stderr = full, &stderr
	if err := cmd.Run(); err == nil || !strings.Contains(stderr.String(), "no space left on device") {
		t.Errorf("%v, and it prints %q", err, stderr.String())
	}
}
