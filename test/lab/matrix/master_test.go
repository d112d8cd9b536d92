//go:build labmatrix || releases

package matrix

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

	"github.com/pmk-sched/pmk-sched/versions"
)

// labName is the name of the one lab that there is at a time.
const labName = "matrix"

// program is the pmk-sched binary under test.
var program string

func TestMain(m *testing.M) { os.Exit(runAll(m)) }

func runAll(m *testing.M) int {
	dir, err := os.MkdirTemp("", "labmatrix-")
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
	// /tmp may be in memory, which labs would fill.
	labs, err := os.MkdirTemp("/var/tmp", "labmatrix-")
	if err == nil {
		defer os.RemoveAll(labs)
		err = os.Setenv("PMK_SCHED_LAB_DIR", labs)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer printTable(os.Stdout)
	return m.Run()
}

// subject is a release on one shape of master, with the config API that the release itself writes.
type subject struct{ release, layout, api string }

func (s subject) minor(t *testing.T) int {
	t.Helper()
	release, err := versions.Parse(s.release)
	if err != nil {
		t.Fatal(err)
	}
	return release.Minor
}

// image is the reference of the scheduler that is built for the release.
func (s subject) image() string { return "localhost/my-scheduler:" + s.release }

// labelKey and taint are what the control plane's node carries.
func (s subject) labelKey() string {
	if s.layout == "pmk" {
		return "node-role.kubernetes.io/master"
	}
	return "node-role.kubernetes.io/control-plane"
}

func (s subject) taint() string {
	if s.layout == "pmk" {
		return s.labelKey() + "=true:NoSchedule"
	}
	return s.labelKey() + "=:NoSchedule"
}

func (s subject) kubeconfig() string {
	if s.layout == "pmk" {
		return "/etc/pf9/kube.d/kubeconfigs/kube-scheduler.yaml"
	}
	return "/etc/kubernetes/scheduler.conf"
}

// master is the lab's control-plane node, seen from inside.
type master struct{ subject }

// up brings the lab up, and takes it down when the test ends.
func up(t *testing.T, s subject) master {
	t.Helper()
	t.Cleanup(func() {
		if r := run(t, command(t, "lab", "down", "--name", labName)); r.code != 0 && !strings.Contains(r.stderr, "no such lab") {
			t.Errorf("take the lab down: %s", r)
		}
	})
	// Compiling a whole control plane for the first time takes long.
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	run(t, exec.CommandContext(ctx, program, "lab", "up", "--name", labName, "--branch", s.release, "--layout", s.layout)).ok(t)
	return master{s}
}

// result is what a command printed and how it ended.
type result struct {
	stdout, stderr string
	code           int
}

func (r result) String() string {
	return fmt.Sprintf("exit status %d\n--- stdout\n%s\n--- stderr\n%s", r.code, r.stdout, r.stderr)
}

// ok fails the test unless the command ended with status 0, and returns what it printed.
func (r result) ok(t *testing.T) result {
	t.Helper()
	if r.code != 0 {
		t.Fatalf("%s", r)
	}
	return r
}

// command runs the program on the machine itself.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	return exec.CommandContext(patience(t), program, args...)
}

// patience is the context of one command: it also serves cleanups, in which the test's own context has ended.
func patience(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 20*time.Minute)
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

// exec runs any command on the master.
func (m master) exec(t *testing.T, argv ...string) result {
	t.Helper()
	return run(t, command(t, append([]string{"lab", "exec", "--name", labName, "--"}, argv...)...))
}

// pmkSched runs the program on the master, as its administrator would.
func (m master) pmkSched(t *testing.T, args ...string) result {
	t.Helper()
	return m.exec(t, append([]string{program}, args...)...)
}

// kubectl runs kubectl on the master and returns what it printed; the test fails if it does.
func (m master) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return strings.TrimSpace(m.exec(t, append([]string{"kubectl"}, args...)...).ok(t).stdout)
}

// write makes a file for a command of the master to read.
func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
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
