package rollout

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/rollout/stage"
)

var began = time.Date(2026, 11, 29, 1, 0, 0, 0, time.UTC)

// at returns the time some milliseconds after the step began.
func at(milliseconds int) time.Time { return began.Add(time.Duration(milliseconds) * time.Millisecond) }

// routed returns a pod that was created in a second of the step.
func routed(second int, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b", UID: types.UID("u"),
		CreationTimestamp: metav1.NewTime(at(1000 * second)), Annotations: map[string]string{ownership.AnnotationRoute: "s"}}}
	for _, change := range changes {
		change(p)
	}
	return p
}

// bound gives a pod a node at a second.
func bound(second int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.NodeName = "n"
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue,
			LastTransitionTime: metav1.NewTime(at(1000 * second))}}
	}
}

func rejected(p *corev1.Pod) {
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Reason: corev1.PodReasonUnschedulable}}
}

func gatedPod(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} }

func TestWaitsAreMeasuredByTheWatch(t *testing.T) {
	for name, tc := range map[string]struct {
		watch func(o *observer)
		look  time.Time
		want  []stage.Pod
	}{
		"bound": {func(o *observer) {
			o.see(routed(1), true, at(1100))
			o.see(routed(1, bound(1)), true, at(1350))
		}, at(9000), []stage.Pod{{Name: "a/b", Wait: 250 * time.Millisecond, Bound: true}}},
		"waits": {func(o *observer) { o.see(routed(1), true, at(1100)) }, at(4100),
			[]stage.Pod{{Name: "a/b", Wait: 3 * time.Second}}},
		"was rejected, then bound": {func(o *observer) {
			o.see(routed(1), true, at(1100))
			o.see(routed(1, rejected), true, at(1200))
			o.see(routed(1, bound(3)), true, at(3100))
		}, at(9000), []stage.Pod{{Name: "a/b", Wait: 2 * time.Second, Bound: true, Unschedulable: true}}},
		"the watch was late": {func(o *observer) { o.see(routed(1, bound(5)), true, at(8000)) }, at(9000),
			[]stage.Pod{{Name: "a/b", Wait: 3 * time.Second, Bound: true}}},
		"there before": {func(o *observer) { o.see(routed(1, bound(5)), false, at(8000)) }, at(9000),
			[]stage.Pod{{Name: "a/b", Wait: 4 * time.Second, Bound: true}}},
		"there before, waits": {func(o *observer) { o.see(routed(1), false, at(8000)) }, at(9000),
			[]stage.Pod{{Name: "a/b", Wait: 8 * time.Second}}},
		"deleted while it waits": {func(o *observer) {
			o.see(routed(1), true, at(1000))
			o.lose(cache.DeletedFinalStateUnknown{Obj: routed(1)}, at(3000))
		}, at(9000), []stage.Pod{{Name: "a/b", Wait: 2 * time.Second}}},
		"deleted on its node": {func(o *observer) {
			o.see(routed(1), true, at(1000))
			o.see(routed(1, bound(1)), true, at(1500))
			o.lose(routed(1), at(3000))
		}, at(9000), []stage.Pod{{Name: "a/b", Wait: 500 * time.Millisecond, Bound: true}}},
		"gates do not count": {func(o *observer) {
			o.see(routed(1, gatedPod), true, at(1000))
			o.see(routed(1), true, at(5000))
			o.see(routed(1, bound(5)), true, at(5200))
		}, at(9000), []stage.Pod{{Name: "a/b", Wait: 200 * time.Millisecond, Bound: true}}},
		"gates are closed": {func(o *observer) { o.see(routed(1, gatedPod), true, at(1000)) }, at(9000), nil},
		"before the step":  {func(o *observer) { o.see(routed(-1), false, at(1000)) }, at(9000), nil},
		"of another scheduler": {func(o *observer) {
			o.see(routed(1, func(p *corev1.Pod) { p.Annotations = nil }), true, at(0))
		}, at(9000), nil},
		"a pod that waits stays": {func(o *observer) { o.see(routed(1), true, at(1000)); o.begin(at(5000)) }, at(9000),
			[]stage.Pod{{Name: "a/b", Wait: 8 * time.Second}}},
		"a bound one does not": {func(o *observer) {
			o.see(routed(1, bound(1)), true, at(1000))
			o.begin(at(5000))
		}, at(9000), nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := newObserver("s", began)
			tc.watch(o)
			if diff := cmp.Diff(tc.want, o.look(tc.look)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
