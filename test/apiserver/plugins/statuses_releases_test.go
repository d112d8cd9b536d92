//go:build linux && releases

package plugins

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// statusUpdates is how many times the status of a running pod is written.
const statusUpdates = 4

// From 1.32 on the scheduler asks the plugins about updates of the status of other pods.
func statusesWakeNothing(t *testing.T, s subject) {
	t.Run("Coscheduling", func(t *testing.T) {
		x := startGangs(t, s, "status-gangs", 1, 5)
		x.create(t, x.pod("first", amounts{slots: "1"}))
		x.awaitBound(t, "first")
		x.createWith(t, "a", 5, 5, 1)
		x.awaitReason(t, "a", "more than is free")
		x.ignoresStatuses(t, "a-0", "a-1", "a-2", "a-3", "a-4")
	})
	t.Run("ElasticQuota", func(t *testing.T) {
		x := startQuota(t, s, "status-quota", 5)
		x.create(t, x.pod("first", amounts{wakeSeats: "5"}))
		x.awaitBound(t, "first")
		x.ignoresStatuses(t, x.createRejected(t, amounts{wakeSeats: "1"}, "no more than 5 of example.com/wake-seats")...)
	})
	t.Run("NUMAAware", func(t *testing.T) {
		x := startZones(t, s, "status-zones")
		x.create(t, x.pod("first", guaranteed("7500m")))
		x.awaitBound(t, "first")
		x.ignoresStatuses(t, x.createRejected(t, guaranteed("1"), noZone)...)
	})
}

// createRejected creates five pods that the scheduler rejects for a reason, and returns their
// names.
func (x *cluster) createRejected(t *testing.T, need amounts, reason string) (names []string) {
	t.Helper()
	for i := range 5 {
		names = append(names, fmt.Sprint("rejected-", i))
		x.create(t, x.pod(names[i], need))
		x.awaitRejected(t, names[i], reason)
	}
	return names
}

// ignoresStatuses checks that updates of the status of a running pod do not retry rejected pods.
// The deletion of the pod "first" retries them: the scheduler has handled the updates before,
// because it handles all events of bound pods in their order.
func (x *cluster) ignoresStatuses(t *testing.T, rejected ...string) {
	t.Helper()
	x.create(t, x.pod("other", nil))
	x.awaitBound(t, "other")
	x.awaitAside(t, len(rejected))
	before := x.rejections(t)
	for i := range statusUpdates {
		patch := fmt.Appendf(nil, `{"status": {"phase": "Running", "message": "%d"}}`, i)
		if _, err := x.Kube.CoreV1().Pods(x.name).Patch(t.Context(), "other", types.MergePatchType, patch,
			metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
		x.awaitAside(t, len(rejected))
	}
	x.wakes(t, "a pod is deleted after status updates", func() { x.remove(t, "first") }, rejected...)
	if retries := x.rejections(t) - before; retries > 0 {
		t.Errorf("%d updates of the status of another pod retried %d rejected pods %v times", statusUpdates, len(rejected),
			retries)
	}
}

// rejections returns how many times the scheduler has rejected a pod.
func (x *cluster) rejections(t *testing.T) (n float64) {
	t.Helper()
	run.Eventually(t, "the scheduler has counted its attempts", func(ctx context.Context) (bool, string) {
		metrics, err := controlplane.ReadMetrics(ctx, x.metrics)
		n = metrics.By(t, "scheduler_schedule_attempts_total", "result")["unschedulable"]
		return n > 0, fmt.Sprint(err)
	})
	return n
}
