package plugintest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

func TestNodeSumsTheRequestsOfItsPods(t *testing.T) {
	object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	object.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"),
		corev1.ResourcePods: resource.MustParse("110"), "example.com/gpu": resource.MustParse("2")}
	node := plugintest.NewNode(object,
		plugintest.NewPod("default", "a", plugintest.Requests("500m", "1Mi")),
		plugintest.NewPod("default", "b", corev1.ResourceList{"example.com/gpu": resource.MustParse("1"),
			corev1.ResourceEphemeralStorage: resource.MustParse("1Ki")}))
	want := scheduler.Resources{MilliCPU: 500, Memory: 1 << 20, EphemeralStorage: 1 << 10, Pods: 2,
		Scalar: map[corev1.ResourceName]int64{"example.com/gpu": 1}}
	if diff := cmp.Diff(want, node.Requested()); diff != "" {
		t.Error(diff)
	}
	want = scheduler.Resources{MilliCPU: 4000, Pods: 110, Scalar: map[corev1.ResourceName]int64{"example.com/gpu": 2}}
	if diff := cmp.Diff(want, node.Allocatable()); diff != "" {
		t.Error(diff)
	}
	if node.PodCount() != 2 || node.Pod(1).Name != "b" || node.Node() != object {
		t.Errorf("got %d pods, %v", node.PodCount(), node.Pod(1))
	}
}

type shared struct{ n int }

func (s *shared) Clone() interface{} { return &shared{s.n} }

func TestStateCloneCopiesCloners(t *testing.T) {
	state := plugintest.NewState()
	state.Write("a", &shared{1})
	state.Write("b", 2)
	clone := state.Clone()
	value, _ := clone.Read("a")
	value.(*shared).n = 7
	state.Delete("b")
	if original, _ := state.Read("a"); original.(*shared).n != 1 {
		t.Error("the clone shares its value with the original")
	}
	if _, ok := state.Read("b"); ok {
		t.Error("b was deleted")
	}
	if kept, ok := clone.Read("b"); !ok || kept != 2 {
		t.Error("the clone lost b")
	}
}

func TestHandleRecordsLogsEventsAndMetrics(t *testing.T) {
	waiting := &plugintest.WaitingPod{Waiting: plugintest.NewPod("default", "w", nil), Plugins: []string{"A", "B"}}
	handle := &plugintest.Handle{Level: 5, Waiting: []*plugintest.WaitingPod{waiting}}
	ctx := context.Background()
	handle.Logger(ctx).Info(5, "seen", "pod", "w")
	handle.Logger(ctx).Info(6, "not seen")
	handle.Logger(ctx).Error(errors.New("x"), "failed")
	if diff := cmp.Diff([]string{"seen pod=w", "failed err=x"}, handle.Lines()); diff != "" {
		t.Error(diff)
	}
	handle.EventRecorder().Eventf(waiting.Waiting, nil, "Normal", "Held", "Scheduling", "for %d", 3)
	if diff := cmp.Diff([]string{"Normal Held Scheduling: for 3"}, handle.Events()); diff != "" {
		t.Error(diff)
	}
	handle.IterateOverWaitingPods(func(w scheduler.WaitingPod) { w.Allow("A") })
	handle.RejectWaitingPod(waiting.Waiting.UID)
	if diff := cmp.Diff([]string{"B"}, waiting.Plugins); diff != "" || waiting.Rejected == "" {
		t.Error(diff, waiting.Rejected)
	}
	if handle.GetWaitingPod("missing") != nil {
		t.Error("found a pod that is not waiting")
	}
	if _, err := handle.Nodes().Get("missing"); err == nil {
		t.Error("found a node that does not exist")
	}
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "c", Help: "c"})
	for i := 0; i < 2; i++ {
		if _, err := scheduler.Register(handle.Metrics(), counter); err != nil {
			t.Error(err)
		}
	}
	if handle.SharedInformerFactory() != handle.SharedInformerFactory() || handle.ClientSet() == nil {
		t.Error("the informers are not shared")
	}
}
