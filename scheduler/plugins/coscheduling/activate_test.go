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
