package coscheduling

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Requests that fail are repeated after a second each.
func TestFailedRetriesAreRepeated(t *testing.T) {
	w := newWorld(t, `{"backoff": {"initial": "10s"}}`, 4)
	w.createGang("rank", 2, 2)
	w.createGang("other", 2, 5) // no node has room for it
	first := w.pods["shop/rank-0"]
	first.Annotations = map[string]string{rejected: "for good"}
	w.run(soon, func() bool { return w.attempts(resultUnplaced) == 1 })
	first.Annotations = nil
	failed := map[string][]time.Time{}
	w.refuses = func(pod *corev1.Pod) error {
		failed[pod.Name] = append(failed[pod.Name], w.clock)
		return errors.New("the API server does not answer")
	}
	w.run(time.Minute, func() bool { return len(failed["rank-0"]) == 4 || len(failed["rank-1"]) == 4 })
	for name, times := range failed {
		for i := range times[1:] {
			if after := times[i+1].Sub(times[i]); after < time.Second || after > 1100*time.Millisecond {
				t.Errorf("%s is repeated after %s", name, after)
			}
		}
	}
	w.refuses = nil
	w.run(time.Minute, func() bool { return w.countPods("rank", placed) == 2 })
}

// A retry that has no effect is repeated while the others of the group wait.
func TestRetriesWithoutAnEffectAreRepeated(t *testing.T) {
	w := newWorld(t, `{"timeout": "1m"}`, 4)
	var lost []time.Time
	w.refuses = func(pod *corev1.Pod) error {
		lost = append(lost, w.clock)
		return nil
	}
	w.create(newPod("rank-0", "rank", 2, 2))
	w.run(time.Second, nil)
	w.create(newPod("rank-1", "rank", 2, 2))
	w.run(50*time.Second, nil)
	if len(lost) < 2 {
		t.Fatalf("%d retries:\n%s", len(lost), w)
	}
	for i := range lost[1:] {
		if after := lost[i+1].Sub(lost[i]); after < stale {
			t.Errorf("repeated after %s", after)
		}
	}
}

// Groups whose pods are gone are forgotten after a while.
func TestGroupsWithoutPodsAreForgotten(t *testing.T) {
	w := newWorld(t, "", 4)
	w.createGang("gone", 2, 1)
	w.createGang("large", 1, 5)
	w.run(soon, func() bool { return w.countPods("gone", placed) == 2 })
	w.remove("gone")
	w.run(3*sweepInterval, nil)
	if len(w.gangs) != 1 || w.gangs["shop/large"] == nil {
		t.Errorf("%d groups are known", len(w.gangs))
	}
}

func TestEveryTickUntilTheContextIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		ticks, ended := 0, false
		go func() {
			every(ctx, func() { ticks++ })
			ended = true
		}()
		time.Sleep(3*tick + tick/2)
		synctest.Wait()
		if ticks != 3 || ended {
			t.Errorf("%d ticks, ended %t", ticks, ended)
		}
		cancel()
		time.Sleep(2 * tick)
		synctest.Wait()
		if ticks != 3 || !ended {
			t.Errorf("%d ticks after the end, ended %t", ticks, ended)
		}
	})
}
