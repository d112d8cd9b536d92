//go:build linux

// Package run runs commands for tests, pmk-sched above all, and waits for conditions.
package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Environment variables that name the binaries under test. Without them, tests use the binaries
// that `make build` writes into bin.
const (
	envProgram  = "PMK_SCHED_TEST_PROGRAM"
	envExtender = "PMK_SCHED_TEST_EXTENDER"
)

// Root returns the top directory of the repository: the first directory above the test's that has a
// file sources.go.
func Root() string {
	dir, err := os.Getwd() // the directory of the package, in a test
	if err != nil {
		panic(err)
	}
	for ; dir != "/"; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "sources.go")); err == nil {
			return dir
		}
	}
	panic("the test does not run in the repository")
}

// Program returns the path of the pmk-sched binary under test.
func Program(t testing.TB) string {
	t.Helper()
	return named(t, envProgram, "pmk-sched")
}

// Extender returns the path of the pmk-extender binary under test.
func Extender(t testing.TB) string {
	t.Helper()
	return named(t, envExtender, "pmk-extender")
}

func named(t testing.TB, env, name string) string {
	t.Helper()
	if path := os.Getenv(env); path != "" {
		return path
	}
	return Binary(t, name)
}

// Binary returns the path of a program in bin.
func Binary(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(Root(), "bin", name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("find %s: %v (run make build bin/helm)", name, err)
	}
	return path
}

// Result is the output and the exit status of a command.
type Result struct {
	Stdout, Stderr string
	Code           int
}

// String shows all of it.
func (r Result) String() string {
	return fmt.Sprintf("exit status %d\n--- stdout\n%s\n--- stderr\n%s", r.Code, r.Stdout, r.Stderr)
}

// OK fails the test unless the command succeeded.
func (r Result) OK(t testing.TB) Result {
	t.Helper()
	if r.Code != 0 {
		t.Fatalf("%s", r)
	}
	return r
}

// Fails fails the test unless the command ended with that exit status and printed each of the
// texts.
func (r Result) Fails(t testing.TB, code int, texts ...string) {
	t.Helper()
	if r.Code != code {
		t.Fatalf("got exit status %d, want %d: %s", r.Code, code, r)
	}
	r.Prints(t, texts...)
}

// Prints fails the test unless the command printed each of the texts.
func (r Result) Prints(t testing.TB, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(r.Stderr+r.Stdout, text) {
			t.Errorf("the output lacks %q: %s", text, r)
		}
	}
}

// Context returns the context of one command. It outlives the test's own, so that cleanups can use
// it. It has no deadline: a command that compiles Kubernetes may take very long on a slow machine,
// and `go test -timeout` bounds all of them.
func Context(t testing.TB) context.Context {
	t.Helper()
	return context.WithoutCancel(t.Context())
}

// Command runs a command to its end. A command that cannot be started fails the test.
func Command(t testing.TB, cmd *exec.Cmd) Result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("run %s: %v", strings.Join(cmd.Args, " "), err)
	}
	return Result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// PMKSched runs pmk-sched on this machine.
func PMKSched(t testing.TB, args ...string) Result {
	t.Helper()
	return Command(t, exec.CommandContext(Context(t), Program(t), args...))
}

// Lab is the program in bin that runs labs.
const Lab = "pmk-lab"

// PMKLab runs pmk-lab on this machine.
func PMKLab(t testing.TB, args ...string) Result {
	t.Helper()
	return Command(t, exec.CommandContext(Context(t), Binary(t, Lab), args...))
}

// Patience is how long Eventually waits: conditions hold much sooner, except on an overloaded
// machine.
const Patience = 5 * time.Minute

// Eventually polls a condition until it holds. When Patience is over, it fails the test with the
// last value of seen.
func Eventually(t testing.TB, what string, condition func(context.Context) (ok bool, seen string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), Patience)
	defer cancel()
	for {
		began := time.Now()
		ok, seen := condition(ctx)
		if ok {
			return
		}
		// A condition that runs kubectl leaves most of a processor to others.
		pause := max(100*time.Millisecond, 3*time.Since(began))
		select {
		case <-ctx.Done():
			t.Fatalf("timed out waiting: %s; last seen: %s", what, seen)
		case <-time.After(pause):
		}
	}
}

// Decode reads JSON that a command printed.
func Decode[T any](t testing.TB, text string) T {
	t.Helper()
	var value T
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("decode JSON: %v\n%s", err, text)
	}
	return value
}

// WriteFile writes a file into a temporary directory of the test and returns its path.
func WriteFile(t testing.TB, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
