package scheduler_test

import (
	"context"
	"errors"
	"sort"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

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

// inform makes a pod one of the scheduler's informer.
func inform(t *testing.T, h scheduler.Handle, pods ...*corev1.Pod) {
	t.Helper()
	for _, pod := range pods {
		if err := h.SharedInformerFactory().Core().V1().Pods().Informer().GetStore().Add(pod); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRejectedPodsAreRetriedOnceUnlessThatFails(t *testing.T) {
	h := &refusing{Handle: &plugintest.Handle{}, namespace: "closed"}
	var rejected scheduler.RejectedPods
	rejected.Retry(t.Context(), h, "Quiet")
	bound := plugintest.NewPod("shop", "bound", nil)
	for _, pod := range []*corev1.Pod{bound, plugintest.NewPod("shop", "a", nil), plugintest.NewPod("shop", "b", nil),
		plugintest.NewPod("closed", "c", nil)} {
		inform(t, h, pod)
		rejected.Add(h, pod)
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

func TestOnlyPendingPodsOfTheInformerAreRetried(t *testing.T) {
	h := &plugintest.Handle{}
	var rejected scheduler.RejectedPods
	pending, bound, later := plugintest.NewPod("shop", "a", nil), plugintest.NewPod("shop", "b", nil),
		plugintest.NewPod("shop", "later", nil)
	other := pending.DeepCopy()
	other.UID = "other"
	unbound := bound.DeepCopy()
	bound.Spec.NodeName = "n"
	inform(t, h, pending, bound, later)
	for _, pod := range []*corev1.Pod{other, unbound, plugintest.NewPod("shop", "invented", nil), pending, later} {
		rejected.Add(h, pod)
	}
	placed := later.DeepCopy()
	placed.Spec.NodeName = "n"
	inform(t, h, placed)
	rejected.Retry(t.Context(), h, "Quiet")
	if diff := cmp.Diff([]string{"shop/a"}, h.Activated()); diff != "" {
		t.Errorf("retried (-want +got):\n%s", diff)
	}
}

func TestRejectedPodsAreBoundedAndExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &plugintest.Handle{}
		var rejected scheduler.RejectedPods
		add := func(from, to int) {
			for i := from; i < to; i++ {
				pod := plugintest.NewPod("shop", strconv.Itoa(i), nil)
				inform(t, h, pod)
				rejected.Add(h, pod)
			}
		}
		add(0, 10100)
		rejected.Retry(t.Context(), h, "Quiet")
		if got := len(h.Activated()); got != 10000 {
			t.Errorf("%d pods are kept, expected 10000", got)
		}
		add(0, 10000)
		time.Sleep(61 * time.Minute)
		add(20000, 20001)
		rejected.Retry(t.Context(), h, "Quiet")
		if diff := cmp.Diff([]string{"shop/20000"}, h.Activated()[10000:]); diff != "" {
			t.Errorf("retried after an hour (-want +got):\n%s", diff)
		}
	})
}
