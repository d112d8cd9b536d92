//go:build linux && faults

package replace

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// replaceSteps are the steps of a replacement, as they are printed, but for the last.
var replaceSteps = []string{
	"inspect the cluster", "lock", "check", "back up", "apply the plugins' role", "write configuration", "swap",
	"wait until it runs", "verify", "wait until stable", "mark replaced",
}

var layouts = []string{lab.LayoutPMK, lab.LayoutKubeadm}

func TestFaultReplaceIsRevertedWhenTheSchedulerFails(t *testing.T) {
	for _, f := range []failure{
		{"ends at once", "crash", lab.LayoutPMK, nil, []string{"exit status 7", "this scheduler ends at once"}},
		{"ends after 2 seconds", "crash-later", lab.LayoutPMK, nil, []string{
			"exit status 7", "this scheduler ends after 2 seconds"}},
		{"is never ready", "silent", lab.LayoutKubeadm, []string{"--timeout", "30s"}, []string{
			"not all containers are ready"}},
		{"never leads", "silent", lab.LayoutPMK, []string{"--timeout", "30s"}, []string{
			"no scheduler holds the lease kube-scheduler|the lease kube-scheduler is still held by the previous scheduler"}},
	} {
		t.Run(f.name, f.isReverted)
	}
}

func TestFaultReplaceKilledAtAnyStepIsRestoredOrResumed(t *testing.T) {
	for i, step := range replaceSteps {
		t.Run(step, func(t *testing.T) { restoredOrResumed(t, exclusive(t, layouts[i%2]), step) })
	}
}

// revertedOrProven closes the terminal of a replacement after a step: afterwards either the
// original scheduler runs, or the new one, which is proven.
func revertedOrProven(t *testing.T, n *node, step string) {
	t.Helper()
	n.HangUpAtStep(t, step, n.replaceArgs("--image", n.Image(t, "timestamp"))...)
	n.PMKSched(t, "status").OK(t)
	if bytes.Equal(n.read(t, n.manifest), n.original) {
		n.isOriginal(t)
		return
	}
	if !slices.Contains(nearEnd(), step) {
		t.Errorf("the replacement was not reverted when the terminal was closed after the step %q", step)
	}
	n.PMKSched(t, "verify", "--default").OK(t)
	n.restore(t)
}

func TestFaultReplaceOnATerminalThatIsClosedAtAnyStepIsRevertedOrProven(t *testing.T) {
	for i, step := range replaceSteps {
		t.Run(step, func(t *testing.T) { revertedOrProven(t, exclusive(t, layouts[i%2]), step) })
	}
}

// isRevertedAfterKills kills a replacement by a scheduler that crashes, right after the swap, and
// runs it again with the same flags: the original manifest is restored, although the failed run
// found its own in place.
func isRevertedAfterKills(t *testing.T, layout string, kills int) {
	t.Helper()
	n := exclusive(t, layout)
	image := n.Faulty(t, "crash", n.Release)
	for range kills {
		n.KillAtStep(t, "swap", n.replaceArgs("--image", image)...)
	}
	n.replace(t, "--image", image).Fails(t, 1, "exit status 7", "✓ undo swap", "manifest is restored")
	n.isOriginal(t)
	n.PMKSched(t, "status").OK(t)
}

func TestFaultReplaceAfterKillsIsRevertedWhenTheSchedulerCrashes(t *testing.T) {
	for _, layout := range layouts {
		for kills := 1; kills <= 2; kills++ {
			t.Run(fmt.Sprintf("%s/%d", layout, kills), func(t *testing.T) { isRevertedAfterKills(t, layout, kills) })
		}
	}
}

// onSmallDisk puts the journal on a small file system, and returns the functions that fill it and
// make room again.
func (n *node) onSmallDisk(t *testing.T) (fill, free func()) {
	t.Helper()
	state := n.Path("var/lib/pmk-sched")
	n.Shell(t, "mkdir -p "+state+" && mount -t tmpfs -o size=4m none "+state)
	t.Cleanup(func() {
		if t.Failed() {
			n.PMKSched(t, "restore", "--yes", "--force") // the backup is lost with the file system
		}
		n.Shell(t, "umount "+state)
	})
	return func() { n.Shell(t, "dd if=/dev/zero of="+state+"/fill bs=4k || true") },
		func() { n.Shell(t, "rm "+state+"/fill") }
}

// The disk with the journal is full after the swap: a scheduler that fails is reverted, and restore
// closes the journal.
func TestFaultReplaceIsRevertedOnAFullDisk(t *testing.T) {
	for _, layout := range layouts {
		t.Run(layout, func(t *testing.T) {
			n := exclusive(t, layout)
			fill, free := n.onSmallDisk(t)
			got := n.AtStep(t, "swap", func(int) { fill() }, n.replaceArgs("--image", n.Faulty(t, "crash", n.Release))...)
			got.Fails(t, 1, "exit status 7", "✓ undo swap", "manifest is restored", "the journal is not closed")
			n.isOriginal(t)
			free()
			n.restore(t)
			n.PMKSched(t, "status").OK(t)
		})
	}
}

// The disk with the journal is full after the swap: a scheduler that works stays, and the next run
// closes the journal.
func TestFaultReplacedSchedulerStaysOnAFullDisk(t *testing.T) {
	for _, layout := range layouts {
		t.Run(layout, func(t *testing.T) {
			n := exclusive(t, layout)
			fill, free := n.onSmallDisk(t)
			args := n.replaceArgs("--image", n.Image(t, "timestamp"))
			n.AtStep(t, "swap", func(int) { fill() }, args...).Fails(t, 1, "journal.json",
				"the new scheduler runs and is verified")
			n.PMKSched(t, "verify", "--default").OK(t)
			free()
			n.PMKSched(t, args...).OK(t)
			n.PMKSched(t, "status").OK(t)
			n.restore(t)
		})
	}
}

// A manifest that was removed comes back. On PMK its removal stops the API server too.
func TestFaultRestoreOfAManifestThatWasRemoved(t *testing.T) {
	for _, layout := range layouts {
		t.Run(layout, func(t *testing.T) {
			n := exclusive(t, layout)
			n.replace(t, "--image", n.Image(t, "timestamp")).OK(t)
			if err := os.Remove(n.Path(n.manifest)); err != nil {
				t.Fatal(err)
			}
			n.restore(t)
		})
	}
}

// A run is killed after the swap while the kubelet is stopped: the next run finds its own manifest,
// which the kubelet has not read yet, and the former scheduler still running.
func TestFaultReplaceResumesBeforeTheKubeletHasReadTheManifest(t *testing.T) {
	for _, layout := range layouts {
		t.Run(layout, func(t *testing.T) {
			n := exclusive(t, layout)
			image := n.Image(t, "timestamp")
			kubelet := func(signal string) { n.Shell(t, "pkill -"+signal+" -x --ns $$ --nslist net kubelet") }
			n.AtStep(t, "swap", func(pid int) {
				kubelet("STOP")
				labs.Signal(t, syscall.SIGKILL)(pid)
			}, n.replaceArgs("--image", image)...)
			n.AtStep(t, "swap", func(int) { kubelet("CONT") }, n.replaceArgs("--image", image)...).OK(t)
			n.PMKSched(t, "verify", "--default").OK(t)
			n.restore(t)
		})
	}
}

// A replaced scheduler that ends, after an edit by hand, is a separate finding.
func TestFaultStatusReportsAReplacedSchedulerThatEnds(t *testing.T) {
	n := exclusive(t, lab.LayoutKubeadm)
	n.replace(t, "--image", n.Image(t, "timestamp")).OK(t)
	n.PMKSched(t, "status").OK(t)
	broken := strings.Replace(string(n.read(t, n.manifest)), "    - kube-scheduler\n",
		"    - kube-scheduler\n    - --no-such-flag\n", 1)
	n.Exec(t, "cp", run.WriteFile(t, "broken.yaml", broken), n.manifest).OK(t)
	run.Eventually(t, "it is a finding", func(context.Context) (bool, string) {
		r := n.PMKSched(t, "status")
		return r.Code == 3 && strings.Contains(r.Stderr, "[default-not-ready]") &&
			strings.Contains(r.Stderr, "[node-files-drift]"), r.String()
	})
	n.PMKSched(t, "restore", "--yes", "--force").OK(t)
	n.isOriginal(t)
	n.PMKSched(t, "status").OK(t)
}

// The kubelet and containerd are restarted between the swap and the new scheduler's start. The
// replacement then either succeeded, and the new scheduler runs, or it was reverted and pmk-sched
// prints the reason.
func TestFaultReplaceSurvivesARestartOfTheNode(t *testing.T) {
	for _, layout := range layouts {
		t.Run(layout, func(t *testing.T) {
			n := exclusive(t, layout)
			got := n.AtStep(t, "swap", func(int) {
				if err := n.Lab.RestartNode(t.Context()); err != nil {
					t.Error(err)
				}
			}, n.replaceArgs("--image", n.Image(t, "timestamp"))...)
			if got.Code == 0 {
				n.PMKSched(t, "verify", "--default").OK(t)
				n.restore(t)
				return
			}
			got.Fails(t, 1, "✓ undo swap", "manifest is restored", "hint: ")
			n.isOriginal(t)
		})
	}
}

// On PMK the API server is in the same pod. When it does not answer after the swap, the original
// manifest is restored without it.
func TestFaultSilentAPIServerRestoresTheOriginalManifest(t *testing.T) {
	n := exclusive(t, lab.LayoutPMK)
	freeze := func(signal string) { n.Shell(t, "pkill -"+signal+" -x --ns $$ --nslist net kube-apiserver") }
	var wg sync.WaitGroup
	restored := false
	got := n.AtStep(t, "swap", func(int) {
		freeze("STOP")
		wg.Go(func() {
			defer freeze("CONT")
			ctx, cancel := context.WithTimeout(run.Context(t), 2*time.Minute)
			defer cancel()
			for ; !restored && ctx.Err() == nil; time.Sleep(200 * time.Millisecond) {
				now, err := os.ReadFile(n.Path(n.manifest))
				restored = err == nil && bytes.Equal(now, n.original)
			}
		})
	}, "replace", "--yes", "--image", n.Image(t, "timestamp"))
	wg.Wait()
	if !restored {
		t.Error("the original manifest was not restored while the API server did not answer")
	}
	got.Fails(t, 1, "did not answer", "manifest is restored")
	n.isOriginal(t)
}

// A reader of the output that ends, as head does, does not stop the replacement.
func TestFaultReplaceContinuesWhenItsOutputIsNotRead(t *testing.T) {
	n := exclusive(t, lab.LayoutKubeadm)
	command := strings.Join(append([]string{run.Program(t)}, n.replaceArgs("--image", n.Image(t, "timestamp"))...), " ")
	n.Shell(t, command+" 2>&1 | head -1")
	n.PMKSched(t, "status").OK(t)
	n.PMKSched(t, "verify", "--default").OK(t)
	n.restore(t)
}

func TestFaultReplaceRefusesAFullDisk(t *testing.T) {
	n := unchanged(t, labs.Exclusive(t, lab.LayoutKubeadm), manifests[lab.LayoutKubeadm])
	state := n.Path("var/lib/pmk-sched")
	command := run.Program(t) + " replace --yes --image " + n.Image(t, "timestamp")
	got := n.Exec(t, "sh", "-c", "mkdir -p "+state+" && mount -t tmpfs -o size=64k none "+state+" && "+command+
		"; code=$?; umount "+state+"; exit $code")
	got.Fails(t, 1, "full", "/var/lib/pmk-sched")
	n.isOriginal(t)
}

func TestFaultReplaceDoesNotOverwriteAManifestThatIsEditedMeanwhile(t *testing.T) {
	n := unchanged(t, labs.Exclusive(t, lab.LayoutPMK), manifests[lab.LayoutPMK])
	edited := append(bytes.Clone(n.original), "# a note\n"...)
	at := n.Path(n.manifest)
	got := n.AtStep(t, "check", func(pid int) {
		labs.Signal(t, syscall.SIGSTOP)(pid)
		if err := os.WriteFile(at, edited, 0o600); err != nil {
			t.Error(err)
		}
		labs.Signal(t, syscall.SIGCONT)(pid)
	}, n.replaceArgs("--image", n.Image(t, "timestamp"))...)
	got.Fails(t, 1, "edited")
	if now := n.read(t, n.manifest); !bytes.Equal(now, edited) {
		t.Errorf("the edit was lost:\n%s", now)
	}
	n.schedules(t)
	if err := os.WriteFile(at, n.original, 0o600); err != nil {
		t.Fatal(err)
	}
	n.isOriginal(t)
}
