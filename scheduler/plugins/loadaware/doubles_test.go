package loadaware

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

// newNode returns a node with 4 cores and 8 GiB.
func newNode(name string) *plugintest.Node {
	return plugintest.NewNode(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     corev1.NodeStatus{Allocatable: plugintest.Requests("4", "8Gi")},
	})
}

func newPod(name, cpu string) *corev1.Pod {
	if cpu == "" {
		return plugintest.NewPod("shop", name, nil)
	}
	return plugintest.NewPod("shop", name, corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)})
}

// world is a plugin with a fake clock and a fake Prometheus.
type world struct {
	*LoadAware
	t       testing.TB
	handle  *plugintest.Handle
	clock   time.Time
	answers map[string][]sample // by metric name
	err     error
	nodes   []*corev1.Node
	pods    map[types.UID]*corev1.Pod // pods that the informer has as pending
}

func newWorld(t testing.TB, args string) *world {
	t.Helper()
	s, err := decode(scheduler.NewArguments([]byte(args)))
	if err != nil {
		t.Fatal(err)
	}
	m, err := newMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, handle: &plugintest.Handle{}, clock: time.Unix(1700000000, 0), answers: map[string][]sample{}}
	w.LoadAware = newPlugin(s, m, w.handle.Logger, func() time.Time { return w.clock })
	w.LoadAware.nodes = func() ([]*corev1.Node, bool) { return w.nodes, w.nodes != nil }
	w.activate = w.handle.Activate
	w.pods = map[types.UID]*corev1.Pod{}
	w.pending = func(_, _ string, uid types.UID) *corev1.Pod { return w.pods[uid] }
	for _, src := range w.sources {
		src.log = w.handle.Logger(t.Context())
		src.query = func(context.Context, string) ([]sample, error) { return w.answers[src.metric.Name], w.err }
	}
	return w
}

// measure advances the clock and runs a query of a metric that returns these loads.
func (w *world) measure(after time.Duration, metric string, loads map[string]float64) {
	w.clock = w.clock.Add(after)
	var samples []sample
	for name, load := range loads {
		samples = append(samples, sample{
			Metric: map[string]string{"instance": name},
			Value:  point{at: float64(w.clock.UnixNano()) / 1e9, value: load},
		})
	}
	w.answers[metric] = samples
	w.round(metric)
}

func (w *world) round(metric string) {
	for _, src := range w.sources {
		if src.metric.Name == metric {
			src.round(w.t.Context())
		}
	}
}

// score returns the normalized scores of nodes.
func (w *world) score(names ...string) map[string]int64 {
	w.t.Helper()
	var scores []scheduler.NodeScore
	for _, name := range names {
		score, status := w.Score(w.t.Context(), nil, newPod("web", ""), newNode(name))
		if !status.IsSuccess() {
			w.t.Fatal(status)
		}
		scores = append(scores, scheduler.NodeScore{Name: name, Score: score})
	}
	if status := w.NormalizeScore(w.t.Context(), nil, newPod("web", ""), scores); !status.IsSuccess() {
		w.t.Fatal(status)
	}
	result := map[string]int64{}
	for _, s := range scores {
		if s.Score < scheduler.MinNodeScore || s.Score > scheduler.MaxNodeScore {
			w.t.Errorf("%s scores %d", s.Name, s.Score)
		}
		result[s.Name] = s.Score
	}
	return result
}

// filter returns the status of Filter for a node.
func (w *world) filter(name string) string {
	return fmt.Sprint(w.Filter(w.t.Context(), nil, newPod("web", ""), newNode(name)))
}

// retried returns the pods that are retried now.
func (w *world) retried() []string {
	before := len(w.handle.Activated())
	w.retry(w.t.Context())
	return append([]string(nil), w.handle.Activated()[before:]...)
}
