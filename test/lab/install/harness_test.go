// Package e2e tests the program as a user meets it: the real binary, on real masters in labs.
package install

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const branch = "v1.24.3"

// program is the pmk-sched binary under test.
var program string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(runAll(m))
}

func runAll(m *testing.M) int {
	dir, err := os.MkdirTemp("", "e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "pmk-sched")
	build := exec.Command("go", "build", "-o", program, "../../../cmd/pmk-sched")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build pmk-sched:", err)
		return 1
	}
	// What another run uses, or has left behind, is not in the way. /tmp may be in memory, which labs would fill.
	labs, err := os.MkdirTemp("/var/tmp", "e2e-labs-")
	if err == nil {
		defer os.RemoveAll(labs)
		err = os.Setenv("PMK_SCHED_LAB_DIR", labs)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer takeDown(labs)
	return m.Run()
}

// result is what a command printed and how it ended.
type result struct {
	stdout, stderr string
	code           int
}

func (r result) String() string {
	return fmt.Sprintf("exit status %d\n--- stdout\n%s\n--- stderr\n%s", r.code, r.stdout, r.stderr)
}

// pmkSched runs the program on the machine itself.
func pmkSched(t *testing.T, args ...string) result {
	t.Helper()
	return run(t, exec.CommandContext(patience(t), program, args...))
}

// patience is the context of one command: it also serves cleanups, in which the test's own context has ended.
func patience(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func run(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("run %s: %v", strings.Join(cmd.Args, " "), err)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// ok fails the test unless the command ended with status 0, and returns what it printed.
func (r result) ok(t *testing.T) result {
	t.Helper()
	if r.code != 0 {
		t.Fatalf("%s", r)
	}
	return r
}

// fails fails the test unless the command ended with the given status and said each of the given texts.
func (r result) fails(t *testing.T, code int, texts ...string) {
	t.Helper()
	if r.code != code {
		t.Fatalf("want exit status %d: %s", code, r)
	}
	for _, text := range texts {
		if !strings.Contains(r.stderr+r.stdout, text) {
			t.Errorf("the person is not told %q: %s", text, r)
		}
	}
}

// command is a command on the master: in its namespaces, with its kubeconfig.
func (m master) command(ctx context.Context, argv ...string) *exec.Cmd {
	return exec.CommandContext(ctx, program, append([]string{"lab", "exec", "--name", m.name, "--"}, argv...)...)
}

// exec runs any command on the master.
func (m master) exec(t *testing.T, argv ...string) result {
	t.Helper()
	return run(t, m.command(patience(t), argv...))
}

// pmkSched runs the program on the master, as its administrator would.
func (m master) pmkSched(t *testing.T, args ...string) result {
	t.Helper()
	return m.exec(t, append([]string{program}, args...)...)
}

// kubectl runs kubectl on the master and returns what it printed; the test fails if it does.
func (m master) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return m.exec(t, append([]string{"kubectl"}, args...)...).ok(t).stdout
}

// apply hands a manifest to the cluster.
func (m master) apply(t *testing.T, manifest string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	m.kubectl(t, "apply", "-f", file)
}

// image builds the scheduler of the lab's release into the master's containerd, once for each lab, and returns its reference.
func (m master) image(t *testing.T) string {
	t.Helper()
	const reference = "localhost/my-scheduler:" + branch
	if _, loaded := images.LoadOrStore(m.name, true); loaded {
		return reference
	}
	m.pmkSched(t, "build", "--branch", branch, "--busybox", "/bin/busybox", "--tag", reference, "--load", "containerd").ok(t)
	return reference
}

// eventually polls until the condition holds or five minutes have passed.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Minute)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("gave up waiting: %s", what)
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// decode reads JSON that the program or kubectl printed.
func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var value T
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, text)
	}
	return value
}
