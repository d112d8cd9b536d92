package adapter

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// broken is a plugin that panics at each extension point.
type broken struct{}

func (*broken) Name() string { return "Broken" }

func (*broken) PreEnqueue(context.Context, *corev1.Pod) *scheduler.Status { panic("broken") }
func (*broken) Less(scheduler.QueuedPod, scheduler.QueuedPod) bool        { panic("broken") }
func (*broken) PreFilter(context.Context, scheduler.State, *corev1.Pod) (*scheduler.PreFilterResult,
	*scheduler.Status) {
	panic("broken")
}
func (*broken) AddPod(context.Context, scheduler.State, *corev1.Pod, *corev1.Pod,
	scheduler.NodeInfo) *scheduler.Status {
	panic("broken")
}
func (*broken) RemovePod(context.Context, scheduler.State, *corev1.Pod, *corev1.Pod,
	scheduler.NodeInfo) *scheduler.Status {
	panic("broken")
}
func (*broken) Filter(context.Context, scheduler.State, *corev1.Pod, scheduler.NodeInfo) *scheduler.Status {
	panic("broken")
}
func (*broken) PostFilter(context.Context, scheduler.State, *corev1.Pod, scheduler.Rejections) (string,
	*scheduler.Status) {
	panic("broken")
}
func (*broken) PreScore(context.Context, scheduler.State, *corev1.Pod, []scheduler.NodeInfo) *scheduler.Status {
	panic("broken")
}
func (*broken) Score(context.Context, scheduler.State, *corev1.Pod, scheduler.NodeInfo) (int64, *scheduler.Status) {
	panic("broken")
}
func (*broken) NormalizeScore(context.Context, scheduler.State, *corev1.Pod, []scheduler.NodeScore) *scheduler.Status {
	panic("broken")
}
func (*broken) Reserve(context.Context, scheduler.State, *corev1.Pod, string) *scheduler.Status {
	panic("broken")
}
func (*broken) Unreserve(context.Context, scheduler.State, *corev1.Pod, string) { panic("broken") }
func (*broken) Permit(context.Context, scheduler.State, *corev1.Pod, string) (*scheduler.Status, time.Duration) {
	panic("broken")
}
func (*broken) PreBind(context.Context, scheduler.State, *corev1.Pod, string) *scheduler.Status {
	panic("broken")
}
func (*broken) PreBindPreFlight(context.Context, scheduler.State, *corev1.Pod, string) *scheduler.Status {
	panic("broken")
}
func (*broken) Bind(context.Context, scheduler.State, *corev1.Pod, string) *scheduler.Status {
	panic("broken")
}
func (*broken) PostBind(context.Context, scheduler.State, *corev1.Pod, string) { panic("broken") }
func (*broken) Sign(context.Context, *corev1.Pod) (interface{}, *scheduler.Status) {
	panic("broken")
}
func (*broken) EventsToRegister() []scheduler.ClusterEvent {
	return []scheduler.ClusterEvent{{Resource: scheduler.EventPod, Action: scheduler.ActionDelete,
		Helps: func(*corev1.Pod, interface{}, interface{}) bool { panic("broken") }}}
}

// everything binds a plugin at each extension point.
type everything struct {
	allPoints
	PreEnqueuePoint
	SignPoint
	EventsPoint
}

// Name returns the plugin's name.
func (e *everything) Name() string { return e.Base.Name() }

// everyPoint is a plugin at each extension point.
type everyPoint interface {
	scheduler.PreEnqueuePlugin
	scheduler.QueueSortPlugin
	scheduler.PreFilterPlugin
	scheduler.FilterPlugin
	scheduler.PostFilterPlugin
	scheduler.PreScorePlugin
	scheduler.ScorePlugin
	scheduler.ReservePlugin
	scheduler.PermitPlugin
	scheduler.PreBindPlugin
	scheduler.BindPlugin
	scheduler.PostBindPlugin
	scheduler.SignPlugin
	scheduler.EventsPlugin
}

// newEverything returns a plugin, bound at each extension point.
func newEverything(t *testing.T, p everyPoint) *everything {
	t.Helper()
	bound, err := Factory(p.Name(), func(_ context.Context, host *Host) (Plugin, error) {
		return bindEverything(host, p), nil
	})(t.Context(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return bound.(*everything)
}

func bindEverything(host *Host, p everyPoint) *everything {
	return &everything{
		allPoints: allPoints{
			Base: host.Base(p), QueueSortPoint: QueueSortPoint{host, p}, PreFilterPoint: PreFilterPoint{host, p},
			FilterPoint: FilterPoint{host, p}, PostFilterPoint: PostFilterPoint{host, p},
			PreScorePoint: PreScorePoint{host, p}, ScorePoint: ScorePoint{host, p}, ReservePoint: ReservePoint{host, p},
			PermitPoint: PermitPoint{host, p}, PreBindPoint: PreBindPoint{host, p}, BindPoint: BindPoint{host, p},
			PostBindPoint: PostBindPoint{host, p},
		},
		PreEnqueuePoint: PreEnqueuePoint{host, p}, SignPoint: SignPoint{host, p}, EventsPoint: EventsPoint{host, p},
	}
}

func TestPanicIsAnErrorOfThePod(t *testing.T) {
	plugin := newEverything(t, &broken{})
	var log bytes.Buffer
	klog.LogToStderr(false)
	klog.SetOutput(&log)
	t.Cleanup(func() { klog.SetOutput(nil); klog.LogToStderr(true) })
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p"}}
	for point, call := range callsOf(t, plugin, pod) {
		log.Reset()
		got := call()
		klog.Flush()
		message := "plugin Broken panicked at " + point + ": broken (panic_test.go:"
		if got.Code() != fwk.Error || got != noStatus && !strings.HasPrefix(got.Message(), message) {
			t.Errorf("%s: %v", point, got)
		}
		if text := log.String(); !strings.Contains(text, message) || !strings.Contains(text, `pod="shop/p"`) ||
			!strings.Contains(text, "panic_test.go") {
			t.Errorf("%s: the log is %q", point, text)
		}
		if n := panicsCounted(t)[point]; n != 1 {
			t.Errorf("%s: %v panics are counted", point, n)
		}
	}
}

// noStatus is the result of calls that return no status.
var noStatus = fwk.NewStatus(fwk.Error)

// callsOf returns a call of each extension point for a pod.
func callsOf(t *testing.T, e *everything, pod *corev1.Pod) map[string]func() *fwk.Status {
	t.Helper()
	ctx, state, info := t.Context(), framework.NewCycleState(), framework.NewNodeInfo()
	info.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	urgent, priority := pod.DeepCopy(), int32(1)
	urgent.Spec.Priority = &priority
	first, second := &framework.PodInfo{Pod: urgent}, &framework.PodInfo{Pod: pod}
	return map[string]func() *fwk.Status{
		"PreEnqueue":       func() *fwk.Status { return e.PreEnqueue(ctx, pod) },
		"PreFilter":        func() *fwk.Status { _, s := e.PreFilter(ctx, state, pod, nil); return s },
		"AddPod":           func() *fwk.Status { return e.PreFilterExtensions().AddPod(ctx, state, pod, first, info) },
		"RemovePod":        func() *fwk.Status { return e.PreFilterExtensions().RemovePod(ctx, state, pod, first, info) },
		"Filter":           func() *fwk.Status { return e.Filter(ctx, state, pod, info) },
		"PostFilter":       func() *fwk.Status { _, s := e.PostFilter(ctx, state, pod, nil); return s },
		"PreScore":         func() *fwk.Status { return e.PreScore(ctx, state, pod, nil) },
		"Score":            func() *fwk.Status { _, s := e.Score(ctx, state, pod, info); return s },
		"NormalizeScore":   func() *fwk.Status { return e.ScoreExtensions().NormalizeScore(ctx, state, pod, nil) },
		"Reserve":          func() *fwk.Status { return e.Reserve(ctx, state, pod, "n") },
		"Unreserve":        func() *fwk.Status { e.Unreserve(ctx, state, pod, "n"); return noStatus },
		"Permit":           func() *fwk.Status { s, _ := e.Permit(ctx, state, pod, "n"); return s },
		"PreBindPreFlight": func() *fwk.Status { _, s := e.PreBindPreFlight(ctx, state, pod, "n"); return s },
		"PreBind":          func() *fwk.Status { return e.PreBind(ctx, state, pod, "n") },
		"Bind":             func() *fwk.Status { return e.Bind(ctx, state, pod, "n") },
		"PostBind":         func() *fwk.Status { e.PostBind(ctx, state, pod, "n"); return noStatus },
		"Sign":             func() *fwk.Status { _, s := e.SignPod(ctx, pod); return s },
		"QueueSort": func() *fwk.Status {
			if !e.Less(&framework.QueuedPodInfo{PodInfo: first}, &framework.QueuedPodInfo{PodInfo: second}) {
				t.Error("the pods are not ordered by priority")
			}
			return noStatus
		},
		"Events": func() *fwk.Status {
			events, err := e.EventsToRegister(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if decision, err := events[0].QueueingHintFn(klog.Background(), pod, pod, nil); decision != fwk.Queue || err != nil {
				t.Errorf("the pod is not retried: %v, %v", decision, err)
			}
			return noStatus
		},
	}
}

// panicsCounted returns the values of the metric by extension point.
func panicsCounted(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counted := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if labels := m.GetLabel(); family.GetName() == "pmk_sched_plugin_panics_total" && labels[1].GetValue() == "Broken" {
				counted[labels[0].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	return counted
}

// scoring is a plugin whose scores are the numbers of pods on nodes, less 50.
type scoring struct{}

func (*scoring) Name() string { return "Scoring" }

func (*scoring) Score(_ context.Context, _ scheduler.State, _ *corev1.Pod,
	n scheduler.NodeInfo) (int64, *scheduler.Status) {
	return int64(n.PodCount()) - 50, nil
}

// doubling doubles the scores.
type doubling struct{ scoring }

func (*doubling) NormalizeScore(_ context.Context, _ scheduler.State, _ *corev1.Pod,
	list []scheduler.NodeScore) *scheduler.Status {
	for i := range list {
		list[i].Score *= 2
	}
	return nil
}

func TestScoresAreKeptWithinBounds(t *testing.T) {
	for name, c := range map[string]struct {
		plugin          scheduler.ScorePlugin
		raw, normalized []int64
	}{
		"Scoring": {&scoring{}, []int64{0, 0, 50, 100}, nil},
		"doubled": {&doubling{}, []int64{-50, 0, 50, 150}, []int64{0, 0, 100, 100}},
	} {
		type bound struct {
			Base
			ScorePoint
		}
		built, err := Factory("Scoring", func(_ context.Context, host *Host) (Plugin, error) {
			return &bound{host.Base(c.plugin), ScorePoint{host, c.plugin}}, nil
		})(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		point := built.(fwk.ScorePlugin)
		var list fwk.NodeScoreList
		for i, pods := range []int{0, 50, 100, 200} {
			info := framework.NewNodeInfo()
			for range pods {
				info.AddPod(&corev1.Pod{})
			}
			score, status := point.Score(t.Context(), framework.NewCycleState(), &corev1.Pod{}, info)
			if score != c.raw[i] || status != nil {
				t.Errorf("%s, %d pods: %d %v, want %d", name, pods, score, status, c.raw[i])
			}
			list = append(list, fwk.NodeScore{Score: score})
		}
		if c.normalized == nil {
			continue
		}
		if s := point.ScoreExtensions().NormalizeScore(t.Context(), nil, &corev1.Pod{}, list); s != nil {
			t.Error(s)
		}
		for i := range list {
			if list[i].Score != c.normalized[i] {
				t.Errorf("%s: normalized to %v, want %v", name, list, c.normalized)
			}
		}
	}
}
