//go:build linux && cases

package rollout

import (
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
)

const (
	// phase is the time for which pods are created before and after a rollout.
	phase = 10 * time.Second
	// mostMore is how much longer a pod may wait with a rollout than before it.
	mostMore = 2 * time.Second
)

// During and after a rollout of a good configuration no pod waits much longer than before it.
func TestPodsWaitNoLongerWithAGoodRollout(t *testing.T) {
	w := newWorld(t, apiserver.Release)
	for round := range 5 {
		name := fmt.Sprint("good-", round)
		w.scheduler(t, name, nil)
		w.clear(t)
		waits := w.measureWaits(t)
		stop := w.load(t, nil)
		time.Sleep(phase)
		before, pods := waits.longest()
		w.rollOut(t, w.file(t, name, short)).OK(t).Prints(t, "a share of 100 %")
		time.Sleep(phase)
		during, more := waits.longest()
		stop()
		_, routed, _ := w.count(t, name)
		t.Logf("the longest wait of %d pods before: %s; of %d pods with the rollout: %s, %d were routed", pods,
			before.Round(time.Millisecond), more, during.Round(time.Millisecond), routed)
		if pods == 0 || routed == 0 || during > before+mostMore {
			t.Errorf("round %d: %s before, %s with the rollout", round, before, during)
		}
		w.unroute(t, name)
	}
}

// waits measures the times from the creation to the binding of pods.
type waits struct {
	mu      sync.Mutex
	waiting map[string]time.Time
	bound   int
	most    time.Duration
}

// measureWaits measures the waits of pods until the test ends.
func (w *world) measureWaits(t *testing.T) *waits {
	t.Helper()
	events, err := w.plane.Kube.CoreV1().Pods(space).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(events.Stop)
	all := &waits{waiting: map[string]time.Time{}}
	go func() {
		for event := range events.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok && event.Type != watch.Deleted {
				all.see(pod)
			}
		}
	}()
	return all
}

func (w *waits) see(pod *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	began, waits := w.waiting[pod.Name]
	switch {
	case pod.Spec.NodeName == "" && !waits:
		w.waiting[pod.Name] = time.Now()
	case pod.Spec.NodeName != "" && waits:
		w.most, w.bound = max(w.most, time.Since(began)), w.bound+1
		delete(w.waiting, pod.Name)
	}
}

// longest returns the longest wait since the last call, of pods that still wait too, and the number
// of pods that were bound since.
func (w *waits) longest() (longest time.Duration, bound int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	longest, bound = w.most, w.bound
	for _, began := range w.waiting {
		longest = max(longest, time.Since(began))
	}
	w.most, w.bound = 0, 0
	return longest, bound
}
