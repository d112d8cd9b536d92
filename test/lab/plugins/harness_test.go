//go:build linux

package plugins

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pmk-sched/pmk-sched/internal/image"
	"github.com/pmk-sched/pmk-sched/internal/lab"
)

const (
	// labName is the name of the one lab that there is at a time.
	labName = "pl-plugins"
	// scheduler is what the deployed scheduler is called.
	scheduler = "plugins"
	// workers are those that the scheduler has to choose among; the master is tainted.
	workers = 3
)

// Set in TestMain: the pmk-sched binary under test, and the folder of the labs.
var program, labs string

func TestMain(m *testing.M) { os.Exit(runAll(m)) }

func runAll(m *testing.M) int {
	dir, err := os.MkdirTemp("", "pluginlab-")
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
	if labs, err = os.MkdirTemp("/var/tmp", "pluginlab-"); err == nil {
		defer os.RemoveAll(labs)
		err = os.Setenv("PMK_SCHED_LAB_DIR", labs)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// subject is a release on one shape of master.
type subject struct {
	release, layout string
	// everyCredentials has the scheduler deployed with each other way of proving who it is, too.
	everyCredentials bool
}

// master is the lab's control-plane node, seen from inside, with clients of an administrator who sits outside.
type master struct {
	subject
	config  *rest.Config
	kube    kubernetes.Interface
	dynamic dynamic.Interface
	// gateway is the machine's address as the node sees it, socket its containerd's as the machine sees it.
	gateway, socket string
}

// up brings the lab up, and takes it down when the test ends.
func up(t *testing.T, s subject) *master {
	t.Helper()
	t.Cleanup(func() {
		if r := run(t, command(t, "lab", "down", "--name", labName)); r.code != 0 && !strings.Contains(r.stderr, "no such lab") {
			t.Errorf("take the lab down: %s", r)
		}
	})
	// Compiling a whole control plane for the first time takes long.
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	run(t, exec.CommandContext(ctx, program, "lab", "up", "--name", labName, "--branch", s.release, "--layout", s.layout, "--nodes", fmt.Sprint(workers))).ok(t)
	m := &master{subject: s}
	l, err := lab.Get(labs, labName)
	if err == nil {
		m.socket = filepath.Join(l.Root(), image.DefaultContainerdSocket)
		m.gateway, err = addressOf(l.Link())
	}
	if err == nil {
		m.config, err = clientcmd.BuildConfigFromFlags("", l.Kubeconfig())
	}
	if err == nil {
		m.config.QPS, m.config.Burst = 1000, 1000
		m.kube, err = kubernetes.NewForConfig(m.config)
	}
	if err == nil {
		m.dynamic, err = dynamic.NewForConfig(m.config)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
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

// patience is the context of one command, or of one condition: it also serves cleanups, in which the test's own context has ended.
func patience(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 15*time.Minute)
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

// pmkSched runs the program on the master, as its administrator would.
func (m *master) pmkSched(t *testing.T, args ...string) result {
	t.Helper()
	return run(t, command(t, append([]string{"lab", "exec", "--name", labName, "--", program}, args...)...))
}

// build builds an image into the node's containerd. The node itself has no way out to download modules.
func (m *master) build(t *testing.T, reference string, args ...string) {
	t.Helper()
	run(t, command(t, append([]string{"build", "--branch", m.release, "--busybox", "/bin/busybox", "--load", "containerd=" + m.socket, "--tag", reference}, args...)...)).ok(t)
}

// kubectl runs kubectl on the master.
func (m *master) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return run(t, command(t, append([]string{"lab", "exec", "--name", labName, "--", "kubectl"}, args...)...)).ok(t).stdout
}

// write makes a file for a command to read.
func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// eventually waits until a condition holds, and fails with what was seen last if it does not.
func eventually(t *testing.T, what string, condition func() (bool, string)) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Minute)
	for {
		ok, seen := condition()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("gave up waiting: %s; last seen: %s", what, seen)
		}
		time.Sleep(250 * time.Millisecond)
	}
}
