package loadaware

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// node is a node with 4 cores and 8 GiB.
type node struct{ object *corev1.Node }

func (n node) Node() *corev1.Node             { return n.object }
func (n node) PodCount() int                  { return 0 }
func (n node) Pod(int) *corev1.Pod            { return nil }
func (n node) Requested() scheduler.Resources { return scheduler.Resources{} }
func (n node) Allocatable() scheduler.Resources {
	return scheduler.Resources{MilliCPU: 4000, Memory: 8 << 30}
}

func newNode(name string) node {
	return node{object: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}}
}

func newPod(name, cpu string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)}}
	pod.Spec.Containers = []corev1.Container{{}}
	if cpu != "" {
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
	return pod
}

// log keeps the lines of level 0 and the errors.
type log struct {
	mu    sync.Mutex
	lines []string
}

func (l *log) Enabled(_ context.Context, level int) bool { return level == 0 }

func (l *log) Info(_ context.Context, _ int, message string, _ []interface{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, "info: "+message)
}

func (l *log) Error(_ context.Context, err error, _ string, _ []interface{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, "error: "+err.Error())
}

// world is a plugin whose clock and whose Prometheus are the test's.
type world struct {
	*LoadAware
	t       testing.TB
	log     *log
	clock   time.Time
	answers map[string][]sample // by name of the metric
	err     error
	nodes   []*corev1.Node
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
	w := &world{t: t, log: &log{}, clock: time.Unix(1700000000, 0), answers: map[string][]sample{}}
	logs := func(ctx context.Context) scheduler.Logger { return scheduler.NewLogger(ctx, w.log) }
	w.LoadAware = newPlugin(s, m, logs, func() time.Time { return w.clock })
	for _, src := range w.sources {
		src.log = logs(t.Context())
		src.nodes = func() ([]*corev1.Node, bool) { return w.nodes, w.nodes != nil }
		src.query = func(context.Context, string) ([]sample, error) { return w.answers[src.metric.Name], w.err }
	}
	return w
}

// measure lets Prometheus answer with these loads of nodes for a metric, after a while.
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

// score returns the scores of nodes after normalisation.
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

// filter returns what Filter says about a node.
func (w *world) filter(name string) string {
	return fmt.Sprint(w.Filter(w.t.Context(), nil, newPod("web", ""), newNode(name)))
}
