//go:build linux

// Package labs gives tests the control-plane node of a lab. The tests of all packages use two labs
// for each layout: one that they share, and one that a test has for itself for as long as it runs.
// The first test that needs a lab starts it, unless hack/with-labs.sh already does, and `make test`
// takes it down in the end. Tests that share a lab use different names and ports.
package labs

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// Release is the release of the labs that tests share.
const Release = "v1.24.3"

// Workers are the fake workers of these labs.
func Workers() []string { return []string{"worker-001", "worker-002", "worker-003"} }

// Environment variables: the directory of the labs, which hack/with-labs.sh makes and removes, and
// the one of pmk-sched itself.
const (
	envPool   = "PMK_SCHED_TEST_LABS"
	envLabDir = "PMK_SCHED_LAB_DIR"
)

// Main runs the tests of a package and returns the exit status. When the package runs on its own,
// the labs that it started are taken down.
func Main(m *testing.M) (code int) {
	dir, err := os.Getenv(envPool), error(nil)
	if dir == "" {
		// /tmp may be in memory, which labs would fill.
		if dir, err = os.MkdirTemp("/var/tmp", "pmk-sched-labs-"); err == nil {
			defer func() {
				if err := takeDown(dir); err != nil {
					fmt.Fprintln(os.Stderr, err)
					code = 1
				}
			}()
		}
	}
	if err = errors.Join(err, os.Setenv(envPool, dir), os.Setenv(envLabDir, dir)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// takeDown takes down all labs of a directory and removes it.
func takeDown(dir string) error {
	found, err := lab.List(dir)
	for _, l := range found {
		out, downErr := exec.Command(filepath.Join(run.Root(), "bin", "pmk-lab"), "down", "--name",
			l.Name()).CombinedOutput()
		if downErr != nil {
			err = errors.Join(err, fmt.Errorf("take down lab %s: %w\n%s", l.Name(), downErr, out))
		}
	}
	return errors.Join(err, os.RemoveAll(dir))
}

// Dir returns the directory of the labs.
func Dir() string { return os.Getenv(envPool) }

// Shared returns the lab of a layout that tests share. The test runs in parallel with others.
func Shared(t testing.TB, layout string) *Node {
	t.Helper()
	inParallel(t)
	return use(t, "shared", layout)
}

// SharedFleet returns the shared labs of several layouts.
func SharedFleet(t testing.TB, layouts ...string) (nodes []*Node) {
	t.Helper()
	inParallel(t)
	for _, layout := range layouts {
		nodes = append(nodes, use(t, "shared", layout))
	}
	return nodes
}

// Exclusive returns another lab of a layout, which no other test uses until this one ends: for
// tests that restart components of the lab, or replace the default scheduler.
func Exclusive(t testing.TB, layout string) *Node {
	t.Helper()
	inParallel(t)
	t.Cleanup(lock(t, "exclusive-"+layout+".use"))
	return use(t, "exclusive", layout)
}

func inParallel(t testing.TB) {
	t.Helper()
	if test, ok := t.(*testing.T); ok {
		test.Parallel()
	}
	if Dir() == "" {
		t.Fatal("the package has no TestMain that calls labs.Main")
	}
}

func use(t testing.TB, kind, layout string) *Node {
	t.Helper()
	n := &Node{Name: kind + "-" + layout, Layout: layout, Release: Release}
	n.bringUp(t)
	n.connect(t)
	n.AwaitReady(t)
	return n
}

// bringUp starts the lab unless it is up. The file with the extension .up is its lock, .done and
// .failed have the output of `lab up`.
func (n *Node) bringUp(t testing.TB) {
	t.Helper()
	defer lock(t, n.Name+".up")()
	done, failed := filepath.Join(Dir(), n.Name+".done"), filepath.Join(Dir(), n.Name+".failed")
	if _, err := os.Stat(done); err == nil {
		return
	}
	if text, err := os.ReadFile(failed); err == nil {
		t.Fatalf("lab %s did not start:\n%s", n.Name, text)
	}
	r := run.PMKLab(t, "up", "--name", n.Name, "--branch", n.Release, "--layout", n.Layout, "--nodes",
		fmt.Sprint(len(Workers())))
	mark := done
	if r.Code != 0 {
		mark = failed
	}
	if err := os.WriteFile(mark, []byte(r.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	r.OK(t)
}

// Options describe a lab of the test's own.
type Options struct {
	Release, Layout string
	// Name tells the labs of one test apart. It may be empty.
	Name string
	// Workers is the number of simulated workers.
	Workers int
	// Masters is the number of control-plane nodes, 0 for one; Kubelets is the number of workers with
	// a kubelet. Only kubeadm sets up several.
	Masters, Kubelets int
}

// Start starts a lab for one test and takes it down in the end.
func Start(t testing.TB, o Options) *Node {
	t.Helper()
	name := []string{cmp.Or(o.Name, "own"), o.Layout, strings.ReplaceAll(strings.TrimPrefix(o.Release, "v"), ".", "-")}
	n := &Node{Name: strings.Join(name, "-"), Layout: o.Layout, Release: o.Release}
	t.Cleanup(func() {
		if r := run.PMKLab(t, "down", "--name", n.Name); r.Code != 0 && !strings.Contains(r.Stderr, "no such lab") {
			t.Errorf("take down lab %s: %s", n.Name, r)
		}
	})
	run.PMKLab(t, "up", "--name", n.Name, "--branch", o.Release, "--layout", o.Layout, "--nodes",
		strconv.Itoa(o.Workers),
		"--masters", strconv.Itoa(max(1, o.Masters)), "--workers", strconv.Itoa(o.Kubelets)).OK(t)
	n.connect(t)
	return n
}

// lock takes a lock of the pool, across processes, and returns a function that releases it.
func lock(t testing.TB, name string) (unlock func()) {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(Dir(), name), os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		t.Fatalf("lock %s: %v", name, err)
	}
	return func() { file.Close() }
}

// once calls do the first time that it is called with a key for the lab of n, by any test of any
// process.
func (n *Node) once(t testing.TB, key string, do func()) {
	t.Helper()
	key = n.Name + "." + strings.NewReplacer("/", "_", ":", "_").Replace(key)
	defer lock(t, key+".lock")()
	done := filepath.Join(Dir(), key+".done")
	if _, err := os.Stat(done); err == nil {
		return
	}
	do()
	if err := os.WriteFile(done, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// firstPort is above the ports that pmk-sched chooses by default.
const firstPort = 11000

// Port returns a port of the host's network for one scheduler. No other test is given it.
func (n *Node) Port(t testing.TB) string {
	t.Helper()
	defer lock(t, n.Name+".ports")()
	file := filepath.Join(Dir(), n.Name+".port")
	text, _ := os.ReadFile(file) // not there for the first one
	port, _ := strconv.Atoi(string(text))
	port = max(port+1, firstPort)
	if err := os.WriteFile(file, []byte(strconv.Itoa(port)), 0o600); err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(port)
}
