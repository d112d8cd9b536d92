package scheduler_test

import (
	"context"
	"errors"
	"sort"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

// refusing fails to activate the pods of a namespace.
type refusing struct {
	*plugintest.Handle
	namespace string
}

func (r *refusing) Activate(ctx context.Context, pod *corev1.Pod) error {
	if pod.Namespace == r.namespace {
		return errors.New("refused")
	}
	return r.Handle.Activate(ctx, pod)
}

func TestRejectedPodsAreRetriedOnceUnlessThatFails(t *testing.T) {
	h := &refusing{Handle: &plugintest.Handle{}, namespace: "closed"}
	var rejected scheduler.RejectedPods
	rejected.Retry(t.Context(), h, "Quiet")
	bound := plugintest.NewPod("shop", "bound", nil)
	for _, pod := range []*corev1.Pod{bound, plugintest.NewPod("shop", "a", nil), plugintest.NewPod("shop", "b", nil),
		plugintest.NewPod("closed", "c", nil)} {
		rejected.Add(pod)
	}
	rejected.Remove(bound.UID)
	rejected.Retry(t.Context(), h, "Quiet")
	if diff := cmp.Diff([]string{
		"Quiet cannot retry a pod; it tries again after the next change err=refused pod=closed/c"}, h.Lines()); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	h.namespace = ""
	rejected.Retry(t.Context(), h, "Quiet")
	rejected.Retry(t.Context(), h, "Quiet")
	got := h.Activated()
	sort.Strings(got)
	if diff := cmp.Diff([]string{"closed/c", "shop/a", "shop/b"}, got); diff != "" {
		t.Errorf("retried (-want +got):\n%s", diff)
	}
}
