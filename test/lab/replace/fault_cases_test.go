//go:build linux && (cases || faults)

package replace

import (
	"regexp"
	"slices"
	"syscall"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
)

// A scheduler that runs at first and ends within the stability window is reverted.
func TestReplaceIsRevertedWhenTheSchedulerCrashes(t *testing.T) {
	failure{
		"ends after 2 seconds", "crash-later", lab.LayoutKubeadm, labs.Stable("6s"),
		[]string{"exit status 7", "this scheduler ends after 2 seconds"},
	}.isReverted(t)
}

func TestReplaceKilledAfterTheSwapIsRestoredOrResumed(t *testing.T) {
	restoredOrResumed(t, exclusive(t, lab.LayoutPMK), "swap")
}

// failure is a scheduler that fails after it was swapped in.
type failure struct {
	name, behaviour, layout string
	args                    []string
	patterns                []string // of the messages
}

// isReverted replaces the default scheduler by one that fails: the old one runs again, and the API
// server was not touched.
func (f failure) isReverted(t *testing.T) {
	n := exclusive(t, f.layout)
	image, kept := n.Faulty(t, f.behaviour, n.Release), n.keepsAPIServer(t)
	failed := n.PMKSched(t, append([]string{"replace", "--yes", "--image", image}, f.args...)...)
	failed.Fails(t, 1, "✓ undo swap", "manifest is restored")
	for _, pattern := range f.patterns {
		if !regexp.MustCompile(pattern).MatchString(failed.Stderr) {
			t.Errorf("no message matches %q: %s", pattern, failed)
		}
	}
	n.isOriginal(t)
	kept()
	n.PMKSched(t, "status").OK(t)
}

// nearEnd are the steps after which only the journal is written: a signal may find that the process
// has ended.
func nearEnd() []string { return []string{"wait until stable", "mark replaced"} }

// restoredOrResumed kills a replacement after a step and takes each of the two ways on.
func restoredOrResumed(t *testing.T, n *node, step string) {
	t.Helper()
	image := n.Image(t, "timestamp")
	kill := func() {
		t.Helper()
		r := n.AtStep(t, step, labs.Signal(t, syscall.SIGKILL), n.replaceArgs("--image", image)...)
		if r.Code == 0 && !slices.Contains(nearEnd(), step) {
			t.Fatalf("the command was not killed: %s", r)
		}
	}
	kill()
	if step == "swap" { // before the journal is written nothing is unfinished
		n.PMKSched(t, "status").Fails(t, 3, "[replacement-unfinished]", "it stopped at step")
	}
	n.restore(t)
	n.PMKSched(t, "status").OK(t)
	kill()
	n.replace(t, "--image", image).OK(t)
	n.PMKSched(t, "status").OK(t)
	n.PMKSched(t, "verify", "--default").OK(t)
	n.restore(t)
}
