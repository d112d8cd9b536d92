//go:build linux

package plugins

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

const (
	// round is the number of operations until the test waits for the scheduler.
	round = 250
	// pollInterval is how often the scheduler is asked for its metrics.
	pollInterval = 200 * time.Millisecond
)

// limitsHold does random operations on a cluster whose scheduler has the four plugins that enforce
// limits. A model recomputes everything from the objects of the API server, without the plugins'
// code:
//
//   - No pod of a team is bound beyond the max of its quota.
//   - No pod is bound to a node or a device that lacks the room, and none that the kubelet of its
//     node rejects because no zone has the CPUs.
//   - No gang is bound in part.
//   - A pod or gang for which there is room is bound without the scheduler's periodic flush.
//   - When all pods are gone, no quota is used.
//
// The test does the work of kubelets and topology agents. Limits that the plugins' READMEs state
// are not tested: nodes without a NodeResourceTopology are not used by pods that need one, with
// NUMAAware's argument unaligned: Reject; an agent never writes what it has read before a kubelet
// accepted a pod after the kubelet has reported that; and pods of a gang have the same requests,
// because whether others fit depends on their order.
func limitsHold(t *testing.T, s subject) {
	ctx, cancel := context.WithCancel(t.Context())
	w := startWorld(ctx, t, s)
	t.Cleanup(func() { cancel(); w.background.Wait() })
	began := time.Now()
	for w.count < operations {
		w.operate(ctx, t, min(round, operations-w.count))
		w.settle(ctx, t)
	}
	t.Logf("%d operations in %.0f s: %d pods were bound, %d evicted, %d resized, %d gangs placed, %d restarts", w.count,
		time.Since(began).Seconds(), w.bindings, w.evictions, w.resizes, w.placed, w.restarts)
	w.empty(ctx, t)
}

// settle waits until the scheduler has placed what can be placed, without its periodic flush. Pods
// that cannot be placed are deleted at the second time, before that flush reaches them.
func (w *world) settle(ctx context.Context, t *testing.T) {
	t.Helper()
	w.mu.Lock()
	removeOld := w.deletePods(ctx, "delete pending", w.sorted(func(r *record) bool {
		return r.pending() && time.Since(r.createdAt) > 20*time.Second
	})...)
	w.mu.Unlock()
	removeOld()
	before, began, last := w.flushed(t), time.Now(), ""
	run.Eventually(t, fmt.Sprintf("seed %d: the scheduler places what can be placed", w.seed),
		func(ctx context.Context) (bool, string) {
			w.check(t)
			ok, seen := w.isSettled(ctx)
			if !ok {
				last, _, _ = strings.Cut(seen, "\n")
			}
			return ok, seen
		})
	if took := time.Since(began); took > 10*time.Second {
		t.Logf("operation %d: placed after %.0f s, %s", w.count, took.Seconds(), last)
	}
	if after := w.flushed(t); after > before {
		t.Errorf("seed %d, operation %d: pods were tried again only because of the time", w.seed, w.count)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forgetGangs()
}

// flushed returns how many pods the scheduler has tried again only because of the time.
func (w *world) flushed(t *testing.T) (pods float64) {
	t.Helper()
	run.Eventually(t, "the scheduler serves its metrics", func(ctx context.Context) (bool, string) {
		metrics, err := controlplane.ReadMetrics(ctx, w.metrics)
		pods = metrics.By(t, controlplane.MovedPods, "event")[controlplane.Flushed]
		return err == nil, fmt.Sprint(err)
	})
	return pods
}

// isSettled reports whether the kubelets and agents have written everything, the model has all
// events, no gang is bound in part, and no pod is pending for which there is room. Other pods are
// tried again and again, because the scheduler retries all when a gang gives up its nodes.
func (w *world) isSettled(ctx context.Context) (bool, string) {
	list, err := w.Kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err.Error()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range list.Items {
		if pod := &list.Items[i]; pod.Spec.SchedulerName == w.name && versionOf(pod) > w.seen {
			return false, "the model lacks an event of " + keyOf(pod)
		}
	}
	for _, on := range w.machines {
		if !on.gone && fmt.Sprint(on.zones) != fmt.Sprint(on.written) {
			return false, "the topology of " + on.name + " is not written"
		}
	}
	if w.unfinished > 0 {
		return false, fmt.Sprintf("%d reports of kubelets", w.unfinished)
	}
	if incomplete := w.checkGangs(); incomplete != "" {
		return false, incomplete
	}
	text, objects := w.placeable()
	return text == "", text + "\n" + w.history(objects...)
}

// empty deletes all pods, and checks that the usage of each quota becomes 0.
func (w *world) empty(ctx context.Context, t *testing.T) {
	t.Helper()
	w.mu.Lock()
	removeAll := w.deletePods(ctx, "delete", w.sorted(func(*record) bool { return true })...)
	w.mu.Unlock()
	removeAll()
	run.Eventually(t, "no quota is used", func(ctx context.Context) (bool, string) {
		metrics, err := controlplane.ReadMetrics(ctx, w.metrics)
		if err != nil {
			return false, err.Error()
		}
		var used []string
		for line := range strings.Lines(string(metrics)) {
			if strings.HasPrefix(line, `pmk_sched_elasticquota_amount{kind="used"`) && !strings.HasSuffix(line, " 0\n") {
				used = append(used, line)
			}
		}
		return len(used) == 0 && strings.Contains(string(metrics), `{kind="used"`), fmt.Sprint(used)
	})
}
