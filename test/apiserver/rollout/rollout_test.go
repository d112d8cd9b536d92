//go:build linux

package rollout

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
)

// short is a rollout whose steps are short.
const short = "steps: [1, 20, 100], stepTime: 1s, minPods: 1, stepLimit: 1m"

func blocksLabel(pod *corev1.Pod) (bool, time.Duration) { return pod.Labels[blocks] != "", 0 }

// A good configuration gets all pods; one that finds no node for some pods is stopped at the first
// step, and the other pods are not touched.
func TestRolloutStopsABadConfigurationAtItsFirstStep(t *testing.T) {
	all := apiserver.Releases()
	for _, release := range slices.Compact([]string{apiserver.Release, all[len(all)-1]}) {
		t.Run(release, func(t *testing.T) { checkRollout(t, newWorld(t, release)) })
	}
}

func checkRollout(t *testing.T, w *world) {
	t.Run("an invalid rollout", func(t *testing.T) {
		path := w.file(t, "none", short)
		w.rollOut(t, path, "--steps", "5%,1%").Fails(t, 2, "each larger than the one before")
		w.rollOut(t, path, "--gate", "agreement>=99").Fails(t, 2, "no gate for the steps")
	})
	stop := w.load(t, map[string]string{blocks: "yes"})
	t.Run("a bad configuration", func(t *testing.T) {
		w.scheduler(t, "bad", blocksLabel)
		path := w.file(t, "bad", short)
		w.rollOut(t, path, "--dry-run").OK(t).Prints(t, "dry run: nothing was changed", "a share of 1 %")
		began := time.Now()
		w.rollOut(t, path).Fails(t, 3, "step 1 of 3: a share of 1 %", "gate unschedulable<=0: ", "(team/p-",
			"the share of its route is 0 %")
		all, routed, waiting := w.count(t, "bad")
		t.Logf("stopped after %s: %d of %d pods were routed, %d wait", time.Since(began), routed, all, waiting)
		if routed == 0 || routed > 1+all/100 {
			t.Errorf("%d of %d pods were routed", routed, all)
		}
		if share := w.registered(t, "bad"); share > 0 {
			t.Errorf("the share is %d %%", share)
		}
	})
	t.Run("a good configuration", func(t *testing.T) {
		w.scheduler(t, "good", nil)
		path := w.file(t, "good", short)
		w.rollOut(t, path).OK(t).Prints(t, "step 3 of 3: a share of 100 %", "a share of 100 %")
		want := []string{"", "rollout: a share of 20 %", "rollout: a share of 100 %", "rollout: a share of 100 %, Passed"}
		if diff := cmp.Diff(want, w.originsOf(t, "good")); diff != "" {
			t.Errorf("history (-want +got):\n%s", diff)
		}
		w.rollOut(t, path).OK(t).Prints(t, "it is deployed at this share already")
	})
	stop()
}
