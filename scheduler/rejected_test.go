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
	synctest.Test(t, func(t *testing.T) {
		h := &refusing{Handle: &plugintest.Handle{}, namespace: "closed"}
		var rejected scheduler.RejectedPods
		retry := func() {
			rejected.Retry(t.Context(), h, "Quiet")
			synctest.Wait()
		}
		retry()
		bound := plugintest.NewPod("shop", "bound", nil)
		for _, pod := range []*corev1.Pod{bound, plugintest.NewPod("shop", "a", nil), plugintest.NewPod("shop", "b", nil),
			plugintest.NewPod("closed", "c", nil)} {
			inform(t, h, pod)
			rejected.Add(h, pod)
		}
		rejected.Remove(bound.UID)
		retry()
		if diff := cmp.Diff([]string{
			"Quiet cannot retry a pod; it tries again after the next change err=refused pod=closed/c"}, h.Lines()); diff != "" {
			t.Errorf("log (-want +got):\n%s", diff)
		}
		h.namespace = ""
		retry()
		retry()
		got := h.Activated()
		sort.Strings(got)
		if diff := cmp.Diff([]string{"closed/c", "shop/a", "shop/b"}, got); diff != "" {
			t.Errorf("retried (-want +got):\n%s", diff)
		}
	})
}

func TestOnlyTheRejectedPodsOfANamespaceAreRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &plugintest.Handle{}
		var rejected scheduler.RejectedPods
		for _, namespace := range []string{"shop", "bank"} {
			pod := plugintest.NewPod(namespace, "a", nil)
			inform(t, h, pod)
			rejected.Add(h, pod)
		}
		rejected.RetryNamespace(t.Context(), h, "Quiet", "shop")
		synctest.Wait()
		if diff := cmp.Diff([]string{"shop/a"}, h.Activated()); diff != "" {
			t.Errorf("retried (-want +got):\n%s", diff)
		}
		rejected.Retry(t.Context(), h, "Quiet")
		synctest.Wait()
		if diff := cmp.Diff([]string{"shop/a", "bank/a"}, h.Activated()); diff != "" {
			t.Errorf("all are retried (-want +got):\n%s", diff)
		}
	})
}

// slow takes a second to activate a pod, as a client that may send few requests does.
type slow struct{ *plugintest.Handle }

func (s *slow) Activate(ctx context.Context, pod *corev1.Pod) error {
	time.Sleep(time.Second)
	return s.Handle.Activate(ctx, pod)
}

// The caller is the handler of an informer, which keeps what it has not handled yet.
func TestRetryDoesNotWaitForTheAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &slow{&plugintest.Handle{}}
		var rejected scheduler.RejectedPods
		var pods []*corev1.Pod
		for i := range 10 {
			pods = append(pods, plugintest.NewPod("shop", strconv.Itoa(i), nil))
			inform(t, h, pods[i])
			rejected.Add(h, pods[i])
		}
		began := time.Now()
		for range 100 {
			rejected.Retry(t.Context(), h, "Quiet")
			for _, pod := range pods { // it is rejected again before its retry
				rejected.Add(h, pod)
			}
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("the caller waited for %s", took)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := len(h.Activated()); got < len(pods) || got > 2*len(pods) {
			t.Errorf("%d pods were retried %d times", len(pods), got)
		}
	})
}

func TestOnlyPendingPodsOfTheInformerAreRetried(t *testing.T) {
	synctest.Test(t, onlyPendingPodsAreRetried)
}

func onlyPendingPodsAreRetried(t *testing.T) {
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
	synctest.Wait()
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
		synctest.Wait()
		if got := len(h.Activated()); got != 10000 {
			t.Errorf("%d pods are kept, expected 10000", got)
		}
		add(0, 10000)
		time.Sleep(61 * time.Minute)
		add(20000, 20001)
		rejected.Retry(t.Context(), h, "Quiet")
		synctest.Wait()
		if diff := cmp.Diff([]string{"shop/20000"}, h.Activated()[10000:]); diff != "" {
			t.Errorf("retried after an hour (-want +got):\n%s", diff)
		}
	})
}
