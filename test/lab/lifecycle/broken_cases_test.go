//go:build linux && (cases || faults || labs)

package lifecycle

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

func TestLabDownAfterUpWasKilledLeavesNothing(t *testing.T) { whileTheAPIServerStarts.leavesNothing(t) }

func TestLabUpThatIsCancelledLeavesNothing(t *testing.T) {
	m := watchMachine(t)
	stateDir, cacheDir := directories(t)
	o := options(t, stateDir, cacheDir, "cancelled")
	ctx, cancel := context.WithCancel(t.Context())
	o.OnStep = func(step string) func(error) {
		if strings.HasPrefix(step, "start the API server") {
			cancel()
		}
		return nil
	}
	if _, err := lab.Up(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if labs, err := lab.List(stateDir); err != nil || len(labs) != 0 {
		t.Errorf("labs left: %d, %v", len(labs), err)
	}
	m.unchanged(t)
}

// killPoint is the time when lab up is killed: after it began a step, and when the first files of
// the step exist.
type killPoint struct {
	name, step string
	// made returns a pattern of files, one of which exists when it is time.
	made func(l *lab.Lab) string
	// masters is the number of control-plane nodes that kubeadm sets up. It is 0 for a lab without
	// kubeadm.
	masters int
}

func inRoot(pattern string) func(*lab.Lab) string {
	return func(l *lab.Lab) string { return filepath.Join(l.Root(), pattern) }
}

// whileTheAPIServerStarts is the point with the most to take down: network, etcd, containerd,
// kubelet, and pods that begin.
var whileTheAPIServerStarts = killPoint{"while the API server starts", "start the API server",
	inRoot("var/log/pods/*/*"), 0}

func (p killPoint) leavesNothing(t *testing.T) {
	t.Helper()
	m := watchMachine(t)
	stateDir, cacheDir := directories(t)
	p.killUp(t, stateDir, cacheDir)
	l, err := lab.Get(stateDir, prefix+"killed")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Status(t.Context()); err != nil {
		t.Errorf("status of a lab whose start was killed: %v", err)
	}
	if err := lab.Down(t.Context(), stateDir, l.Name(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(l.Dir()); err == nil {
		t.Error("its directory still exists")
	}
	m.unchanged(t)
}

// killUp starts another process that starts a lab, and kills it.
func (p killPoint) killUp(t *testing.T, stateDir, cacheDir string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), helper+"="+stateDir, helperMasters+"="+strconv.Itoa(p.masters),
		"PMK_SCHED_CACHE="+cacheDir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	reached := false
	for !reached && lines.Scan() {
		reached = strings.HasPrefix(lines.Text(), p.step)
	}
	if !reached {
		t.Fatalf("lab up never began the step %q", p.step)
	}
	for deadline := time.Now().Add(run.Patience); ; time.Sleep(5 * time.Millisecond) {
		l, err := lab.Get(stateDir, prefix+"killed") // the first step begins before it has written the lab's state
		if err == nil {
			if found, _ := filepath.Glob(p.made(l)); len(found) > 0 {
				break
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s was not reached: %v", p.name, err)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("lab up was done before it was killed")
	}
}
