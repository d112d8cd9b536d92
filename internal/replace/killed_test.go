package replace

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/base/steps"
	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
)

// byLayout returns options that change as much as possible on a layout: an image on kubeadm, the
// configuration, which kube.env names, on PMK.
func byLayout(layout string) Options {
	if layout == "pmk" {
		return asks("", "binpack")
	}
	return asks("localhost/new:v1", "")
}

// verifiedBefore returns other options for a replacement that succeeds before.
func verifiedBefore(layout string) Options {
	if layout == "pmk" {
		return asks("", "spread")
	}
	return asks("localhost/proven:v1", "")
}

// killedSteps are the steps after which a killed run leaves something behind.
func killedSteps() []string {
	return []string{"back up", "write configuration", "swap", "wait until it runs", "wait until stable"}
}

// eachKill runs a test for both layouts and each step: for one kill on a node with its original
// scheduler, and for two kills after a successful replacement.
func eachKill(t *testing.T, killed []string, test func(t *testing.T, n *testNode, good state, step string, kills int)) {
	for _, layout := range []string{"kubeadm", "pmk"} {
		for _, step := range killed {
			for _, kills := range []int{1, 2} {
				t.Run(fmt.Sprintf("%s/%s/%d", layout, step, kills), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						n := newTestNode(t, layout)
						if kills == 2 {
							if _, err := n.run(t, verifiedBefore(layout)); err != nil {
								t.Fatal(err)
							}
						}
						test(t, n, n.state(t), step, kills)
					})
				})
			}
		}
	}
}

// isUndone fails the test unless the node is in the last verified state, without an unfinished run.
func (n *testNode) isUndone(t *testing.T, good state, replaced bool) {
	t.Helper()
	if diff := cmp.Diff(good, n.state(t)); diff != "" {
		t.Errorf("the previous state did not come back (-want +got):\n%s", diff)
	}
	var open []staticpod.State
	if replaced {
		open = []staticpod.State{staticpod.Replaced}
	}
	if diff := cmp.Diff(open, n.openBackups(t)); diff != "" {
		t.Errorf("open backups (-want +got):\n%s", diff)
	}
	if left := n.leftStaged(t); len(left) > 0 {
		t.Errorf("staged files are left: %v", left)
	}
	if err := new(Status).readNodes(t.Context(), n.deps(t), true); err != nil {
		t.Errorf("status: %v", err)
	}
}

// A run with the flags of a killed one finds its own manifest in place. No run has verified that
// manifest: when this one fails, the last verified state comes back.
func TestFailedRunAfterKilledOnesRestoresThePreviousState(t *testing.T) {
	eachKill(t, killedSteps(), func(t *testing.T, n *testNode, good state, step string, kills int) {
		o := byLayout(n.layout.Name)
		for range kills {
			n.kill(t, o, step)
		}
		n.verifyError = errors.New("no pod was bound")
		_, err := n.run(t, o)
		if err == nil || !strings.Contains(err.Error(), "no pod was bound") {
			t.Fatalf("error %v", err)
		}
		n.isUndone(t, good, kills == 2)
	})
}

// The scheduler that a killed run left crashes.
func TestFailedRunAfterAKilledOneReplacesItsCrashingScheduler(t *testing.T) {
	for _, layout := range []string{"kubeadm", "pmk"} {
		t.Run(layout, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newTestNode(t, layout)
				good := n.state(t)
				n.kill(t, byLayout(layout), "swap")
				n.crashing(t)
				_, err := n.run(t, byLayout(layout))
				if err == nil || !strings.Contains(err.Error(), "exit status 7") {
					t.Fatalf("error %v", err)
				}
				n.isUndone(t, good, false)
			})
		})
	}
}

// A scheduler that ends while it is verified is reported with its exit status, and replaced at
// once: verify would wait for a minute.
func TestSchedulerThatEndsWhileItIsVerifiedIsReplacedAtOnce(t *testing.T) {
	for _, layout := range []string{"kubeadm", "pmk"} {
		t.Run(layout, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newTestNode(t, layout)
				good, d := n.state(t), n.deps(t)
				d.Verify = func(ctx context.Context, _ *Plan, _ bool) error {
					n.crashing(t)
					<-ctx.Done()
					return ctx.Err()
				}
				_, err := Run(t.Context(), d, n.info(), byLayout(layout))
				if err == nil || !strings.Contains(err.Error(), "verify: wait for Pod/") ||
					!strings.Contains(err.Error(), "exit status 7") {
					t.Fatalf("error %v", err)
				}
				n.isUndone(t, good, false)
			})
		})
	}
}

// killWithOtherFlags kills a run after a step, and, if there are two kills, another one with other
// flags before its swap.
func (n *testNode) killWithOtherFlags(t *testing.T, step string, kills int) {
	t.Helper()
	o := byLayout(n.layout.Name)
	n.kill(t, o, step)
	if kills == 2 {
		o.Request.Spec.Configuration.Preset = "throughput"
		n.kill(t, o, "write configuration")
	}
}

// A failed run with other flags than the killed ones restores the same state.
func TestFailedRunWithOtherFlagsAfterKilledOnesRestoresThePreviousState(t *testing.T) {
	eachKill(t, []string{"swap", "wait until stable"},
		func(t *testing.T, n *testNode, good state, step string, kills int) {
			n.killWithOtherFlags(t, step, kills)
			n.verifyError = errors.New("no pod was bound")
			if _, err := n.run(t, asks(byLayout(n.layout.Name).Image, "capacity-ratio")); !errors.Is(err,
				n.verifyError) {
				t.Fatalf("error %v", err)
			}
			n.isUndone(t, good, kills == 2)
		})
}

// Files that a killed run wrote do not count as edited.
func TestKilledRunsWithDifferentFlagsAreRestored(t *testing.T) {
	eachKill(t, []string{"swap"}, func(t *testing.T, n *testNode, _ state, step string, kills int) {
		n.killWithOtherFlags(t, step, kills)
		n.isRestored(t)
	})
}

// A restore between the killed run and the failed one closes the killed one, also if the restore
// itself was killed.
func TestFailedRunAfterARestoreOfAKilledOneKeepsTheOriginal(t *testing.T) {
	for _, layout := range []string{"kubeadm", "pmk"} {
		for _, last := range []string{"restore the manifest", "wait until it runs", "clean up", "mark restored"} {
			t.Run(layout+"/"+last, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := newTestNode(t, layout)
					good := n.state(t)
					n.kill(t, byLayout(layout), "swap")
					n.killRestore(t, last)
					n.verifyError = errors.New("no pod was bound")
					if _, err := n.run(t, byLayout(layout)); err == nil {
						t.Fatal("no error")
					}
					n.isUndone(t, good, false)
				})
			})
		}
	}
}

// killRestore restores the original up to the end of a step.
func (n *testNode) killRestore(t *testing.T, step string) {
	t.Helper()
	r := &restoreRun{Deps: n.deps(t)}
	killAfter(t, r.steps(), step, func() error { return r.unlock() })
}

// A run that succeeds after killed ones, and a restore after that, leave the original.
func TestKilledRunIsResumedAndRestored(t *testing.T) {
	eachKill(t, []string{"write configuration", "swap"}, func(t *testing.T, n *testNode, _ state, step string, kills int) {
		o := byLayout(n.layout.Name)
		for range kills {
			n.kill(t, o, step)
		}
		if _, err := n.run(t, o); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]staticpod.State{staticpod.Replaced}, n.openBackups(t)); diff != "" {
			t.Errorf("open backups (-want +got):\n%s", diff)
		}
		if left := n.leftStaged(t); len(left) > 0 {
			t.Errorf("staged files are left: %v", left)
		}
		n.isRestored(t)
	})
}

// isRestored restores the original and fails the test unless every file is the original one.
func (n *testNode) isRestored(t *testing.T) {
	t.Helper()
	if _, err := Restore(t.Context(), n.deps(t), false); err != nil {
		t.Fatal(err)
	}
	want := state{Manifest: n.original}
	if n.layout.EnvFile != "" {
		want.Env = pmkSettings
	}
	n.isUndone(t, want, false)
}

// A manifest that another program edited right before the swap is not overwritten, and nothing of
// the run is left.
func TestEditOfTheManifestBeforeTheSwapIsKept(t *testing.T) {
	for _, layout := range []string{"kubeadm", "pmk"} {
		t.Run(layout, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newTestNode(t, layout)
				want := n.state(t)
				want.Manifest += "# an edit\n"
				n.onStep = func(name string) {
					if name == "swap" {
						n.write(t, n.layout.Manifest, want.Manifest)
					}
				}
				_, err := n.run(t, byLayout(layout))
				if !errors.Is(err, staticpod.ErrEdited) || errors.Is(err, steps.ErrUndo) {
					t.Errorf("error %v", err)
				}
				n.isUndone(t, want, false)
			})
		})
	}
}

// Settings of the node agent that another program edited while a run was in progress are not
// overwritten.
func TestEditOfSettingsDuringARunIsKept(t *testing.T) {
	for _, step := range []string{"write configuration", "swap", "verify"} {
		t.Run(step, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newTestNode(t, "pmk")
				edited := ""
				n.onStep = func(name string) {
					if name == step {
						edited = n.read(t, n.layout.EnvFile) + "export NEW=1\n"
						n.write(t, n.layout.EnvFile, edited)
					}
				}
				n.verifyError = errors.New("no pod was bound")
				_, err := n.run(t, byLayout("pmk"))
				if !errors.Is(err, staticpod.ErrEdited) {
					t.Errorf("error %v", err)
				}
				if got := n.read(t, n.layout.EnvFile); got != edited {
					t.Errorf("the edit was lost:\n%s", got)
				}
				if got := n.read(t, n.layout.Manifest); got != n.original {
					t.Errorf("the manifest was not restored:\n%s", got)
				}
			})
		})
	}
}

// An edit of the settings between two replacements is not lost when the original is restored.
func TestRestoreKeepsAnEditOfSettingsBetweenReplacements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newTestNode(t, "pmk")
		if _, err := n.run(t, asks("", "spread")); err != nil {
			t.Fatal(err)
		}
		n.write(t, n.layout.EnvFile, n.read(t, n.layout.EnvFile)+"export NEW=1\n")
		if _, err := n.run(t, asks("", "binpack")); err != nil {
			t.Fatal(err)
		}
		var edited *EditedError
		if _, err := Restore(t.Context(), n.deps(t), false); !errors.As(err, &edited) ||
			!strings.Contains(err.Error(), "export NEW=1") {
			t.Errorf("error %v", err)
		}
	})
}

// An image after a configuration alone: kube.env still names the first configuration, which
// therefore stays, and restore resets both.
func TestReplacedImageKeepsTheConfigurationThatSettingsName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newTestNode(t, "pmk")
		if _, err := n.run(t, asks("", "spread")); err != nil {
			t.Fatal(err)
		}
		first := strings.TrimSpace(n.state(t).Configurations)
		if _, err := n.run(t, asks("localhost/new:v1", "binpack")); err != nil {
			t.Fatal(err)
		}
		got := n.state(t)
		if !strings.Contains(got.Env, first) || !strings.Contains(got.Configurations, first) {
			t.Errorf("the settings name a configuration that does not exist: %+v", got)
		}
		n.isRestored(t)
	})
}

// A run whose undo fails is not marked as undone, so that restore can finish it.
func TestRestoreFinishesAFailedUndo(t *testing.T) {
	for _, layout := range []string{"kubeadm", "pmk"} {
		t.Run(layout, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newTestNode(t, layout)
				n.verifyError = errors.New("no pod was bound")
				moved := ""
				n.onStep = func(name string) {
					if name == "verify" {
						moved = n.read(t, n.layout.Manifest)
						n.write(t, n.layout.Manifest, moved+"# an edit\n")
					}
				}
				if _, err := n.run(t, byLayout(layout)); !errors.Is(err, staticpod.ErrEdited) {
					t.Fatalf("error %v", err)
				}
				n.write(t, n.layout.Manifest, moved)
				n.isRestored(t)
			})
		})
	}
}
