//go:build linux

package replace

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
)

// childVariable marks the process of inOwnProcess.
const childVariable = "PMK_SCHED_TEST_OWN_PROCESS"

// inOwnProcess runs a test in a separate process, whose limits it may change.
func inOwnProcess(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	if os.Getenv(childVariable) != "" {
		test(t)
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), childVariable+"=1")
	output, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(output), "--- PASS: "+t.Name()+" ") {
		t.Fatalf("%v\n%s", err, output)
	}
}

// limitFiles makes every write of this process to a file beyond that size fail.
func limitFiles(t *testing.T, size uint64) {
	t.Helper()
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: size, Max: unlimited}); err != nil {
		t.Error(err)
	}
}

const unlimited = ^uint64(0)

// fillDisk makes every write to a file fail, as on a full disk: creating, renaming and removing
// files works.
func fillDisk(t *testing.T) {
	t.Helper()
	signal.Ignore(syscall.SIGXFSZ)
	limitFiles(t, 0)
}

// freeDisk ends fillDisk.
func freeDisk(t *testing.T) { limitFiles(t, unlimited) }

// onLayouts runs a test on a node of each layout.
func onLayouts(t *testing.T, test func(t *testing.T, n *testNode)) {
	for _, layout := range []string{"kubeadm", "pmk"} {
		t.Run(layout, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, newTestNode(t, layout)) })
		})
	}
}

// withFullDisk runs a test that fills the disk.
func withFullDisk(t *testing.T, test func(t *testing.T, n *testNode)) {
	inOwnProcess(t, func(t *testing.T) {
		onLayouts(t, func(t *testing.T, n *testNode) {
			t.Cleanup(func() { freeDisk(t) })
			test(t, n)
		})
	})
}

// fillBetween fills the disk before step from, and frees it before step to. If to is empty, the
// disk stays full.
func (n *testNode) fillBetween(t *testing.T, from, to string) {
	n.onStep = func(name string) {
		switch name {
		case from:
			fillDisk(t)
		case to:
			freeDisk(t)
		}
	}
}

// The undo needs no free disk space. Only the journal is left, which restore closes.
func TestFailedRunIsUndoneOnAFullDisk(t *testing.T) {
	withFullDisk(t, func(t *testing.T, n *testNode) {
		good := n.state(t)
		n.fillBetween(t, "verify", "")
		n.verifyError = errors.New("no pod was bound")
		_, err := n.run(t, byLayout(n.layout.Name))
		if !errors.Is(err, n.verifyError) {
			t.Fatalf("error %v", err)
		}
		if diff := cmp.Diff(good, n.state(t)); diff != "" {
			t.Errorf("the previous state did not come back (-want +got):\n%s", diff)
		}
		if hints := strings.Join(problem.Hints(err), "\n"); !strings.Contains(hints, "the original manifest is restored") {
			t.Errorf("hints %q", hints)
		}
		if text := strings.Join(n.warnings, "\n"); !strings.Contains(text, "the journal is not closed") {
			t.Errorf("warnings %q", text)
		}
		n.onStep = nil
		freeDisk(t)
		n.isRestored(t)
	})
}

// A full disk after the swap does not undo a scheduler that works. The next run closes the journal.
func TestVerifiedSchedulerStaysOnAFullDisk(t *testing.T) {
	withFullDisk(t, func(t *testing.T, n *testNode) {
		n.fillBetween(t, "wait until it runs", "")
		_, err := n.run(t, byLayout(n.layout.Name))
		if err == nil || !strings.Contains(strings.Join(problem.Hints(err), "\n"), "the new scheduler runs and is verified") {
			t.Fatalf("error %v", err)
		}
		if !staticpod.Managed([]byte(n.read(t, n.layout.Manifest))) {
			t.Fatal("the new scheduler was undone")
		}
		n.onStep = nil
		freeDisk(t)
		outcome, err := n.run(t, byLayout(n.layout.Name))
		if err != nil || outcome.Changed {
			t.Fatalf("%+v, %v", outcome, err)
		}
		if err := new(Status).readNodes(t.Context(), n.deps(t), true); err != nil {
			t.Errorf("status: %v", err)
		}
		n.isRestored(t)
	})
}

// A journal that could not be written for a while is written in the end.
func TestJournalIsWrittenWhenTheDiskHasSpaceAgain(t *testing.T) {
	withFullDisk(t, func(t *testing.T, n *testNode) {
		n.fillBetween(t, "verify", "clean up")
		if _, err := n.run(t, byLayout(n.layout.Name)); err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(n.warnings, "\n"); !strings.Contains(text, "journal.json") {
			t.Errorf("warnings %q", text)
		}
		if diff := cmp.Diff([]staticpod.State{staticpod.Replaced}, n.openBackups(t)); diff != "" {
			t.Errorf("open backups (-want +got):\n%s", diff)
		}
		n.isRestored(t)
	})
}

// A killed run leaves all files that a restore on a full disk needs.
func TestKilledRunIsRestoredOnAFullDisk(t *testing.T) {
	withFullDisk(t, func(t *testing.T, n *testNode) {
		good := n.state(t)
		n.kill(t, byLayout(n.layout.Name), "swap")
		fillDisk(t)
		_, err := Restore(t.Context(), n.deps(t), false)
		if err == nil || !strings.Contains(err.Error(), "journal.json") ||
			!strings.Contains(strings.Join(problem.Hints(err), "\n"), "the original manifest is in place") {
			t.Errorf("error %v", err)
		}
		if diff := cmp.Diff(good, n.state(t)); diff != "" {
			t.Errorf("the original state did not come back (-want +got):\n%s", diff)
		}
		freeDisk(t)
		n.isRestored(t)
	})
}

// A manifest that was moved out of the kubelet's directory comes back.
func TestRestoreOfAFileThatWasMovedAway(t *testing.T) {
	onLayouts(t, func(t *testing.T, n *testNode) {
		for _, file := range []string{n.layout.Manifest, n.layout.EnvFile} {
			if file == "" {
				continue
			}
			if _, err := n.run(t, byLayout(n.layout.Name)); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(n.path(file), n.path("/moved")); err != nil {
				t.Fatal(err)
			}
			n.isRestored(t)
		}
	})
}

// A manifest that comes back while it is restored is not overwritten.
func TestRestoreKeepsAManifestThatComesBackMeanwhile(t *testing.T) {
	onLayouts(t, func(t *testing.T, n *testNode) {
		if _, err := n.run(t, byLayout(n.layout.Name)); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(n.path(n.layout.Manifest)); err != nil {
			t.Fatal(err)
		}
		n.onStep = func(name string) {
			if name == "restore the manifest" {
				n.write(t, n.layout.Manifest, "another")
			}
		}
		if _, err := Restore(t.Context(), n.deps(t), false); !errors.Is(err, staticpod.ErrEdited) {
			t.Errorf("error %v", err)
		}
		if got := n.read(t, n.layout.Manifest); got != "another" {
			t.Errorf("the manifest was overwritten:\n%s", got)
		}
	})
}
