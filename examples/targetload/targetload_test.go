package targetload

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

// newPlugin returns a plugin that has read these metrics, and a function that changes them.
func newPlugin(t testing.TB, metrics string) (*TargetLoad, func(metrics string)) {
	t.Helper()
	var answer atomic.Value
	answer.Store(metrics)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/apis/metrics.k8s.io/v1beta1/nodes" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, answer.Load().(string))
	}))
	t.Cleanup(server.Close)
	h := &plugintest.Handle{Config: &rest.Config{Host: server.URL}}
	p := &TargetLoad{Target: 40, handle: h, placed: map[string]int64{}}
	refresh := func(metrics string) {
		t.Helper()
		answer.Store(metrics)
		p.refresh(t.Context())
		if lines := h.Lines(); len(lines) > 0 {
			t.Fatal(lines)
		}
	}
	refresh(metrics)
	return p, refresh
}

// usage returns metrics of the nodes n-0, n-1 and so on.
func usage(cpus ...string) string {
	var items []string
	for i, cpu := range cpus {
		items = append(items, fmt.Sprintf(`{"metadata": {"name": "n-%d"}, "usage": {"cpu": "%s", "memory": "1Gi"}}`, i, cpu))
	}
	return `{"items": [` + strings.Join(items, ",") + `]}`
}

func newCluster(nodes int) *plugintest.Cluster {
	template := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	template.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10")}
	return plugintest.NewCluster(nodes, template)
}

func TestNodesAreFilledUpToTheTarget(t *testing.T) {
	p, refresh := newPlugin(t, usage("0", "1", "3", "6", "9500m"))
	pod := plugintest.NewPod("default", "web", plugintest.Requests("1", "1Gi"))
	cluster := newCluster(6)
	scores := func() (list []int64) {
		for _, score := range cluster.Schedule(t.Context(), p, pod).Scores {
			list = append(list, score.Score)
		}
		return list
	}
	// Loads of 10, 20, 40, 70 and 105 %; the last node has no metrics.
	if diff := cmp.Diff([]int64{62, 75, 100, 50, 0, 0}, scores()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	p.Reserve(t.Context(), nil, pod, "n-2")
	if diff := cmp.Diff([]int64{62, 75, 83, 50, 0, 0}, scores()); diff != "" {
		t.Errorf("after a pod was placed (-want +got):\n%s", diff)
	}
	refresh(usage("0", "1", "3", "6", "9500m", "3"))
	if diff := cmp.Diff([]int64{62, 75, 100, 50, 0, 100}, scores()); diff != "" {
		t.Errorf("after new metrics (-want +got):\n%s", diff)
	}
}

func TestTheLastMetricsAreUsedIfThereAreNone(t *testing.T) {
	h := &plugintest.Handle{}
	p := &TargetLoad{Target: 40, handle: h, used: map[string]int64{"n-0": 3000}, placed: map[string]int64{}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p.refresh(ctx)
	if lines := h.Lines(); len(lines) != 1 || !strings.HasPrefix(lines[0], "TargetLoad cannot read metrics") ||
		p.used["n-0"] != 3000 {
		t.Errorf("used %v, log %q", p.used, lines)
	}
}

func TestTargetsThatAreNoPercentageAreRefused(t *testing.T) {
	for target, want := range map[string]string{"0": "between 1 and 99", "100": "between 1 and 99",
		"half": "cannot unmarshal"} {
		_, err := New(t.Context(), scheduler.NewArguments([]byte("target: "+target)), &plugintest.Handle{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", target, err)
		}
	}
}

func BenchmarkTargetLoad(b *testing.B) {
	p, _ := newPlugin(b, usage("1"))
	plugintest.Benchmark(context.Background(), b, newCluster(5000), p,
		plugintest.NewPod("default", "web", plugintest.Requests("1", "1Gi")))
}
