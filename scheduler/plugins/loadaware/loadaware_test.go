package loadaware

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

const (
	server  = `{"prometheus": {"url": "http://127.0.0.1:9090"}`
	cpuOnly = server + `, "metrics": [{"name": "cpu"}]}`
)

func expect[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: %s", what, diff)
	}
}

func TestScoreIsTheWeightedMeanOfFreeCapacity(t *testing.T) {
	w := newWorld(t,
		server+
			`, "metrics": [{"name": "cpu", "weight": 3}, {"name": "memory"}, {"name": "disk", "query": "d", "weight": 0, "maxPercent": 90}]}`)
	w.measure(0, "cpu", map[string]float64{"a": 0.5, "b": 0.1, "c": 1.7})
	w.measure(0, "memory", map[string]float64{"a": 0.1, "b": 0.9})
	w.measure(0, "disk", map[string]float64{"a": 1})
	// a: (3·0.5 + 0.9)/4, b: (3·0.9 + 0.1)/4, c: overloaded, and its memory is unknown
	expect(t, "scores", map[string]int64{"a": 60, "b": 70, "c": 0}, w.score("a", "b", "c"))
}

func TestNodeWithoutFreshDataGetsTheMean(t *testing.T) {
	w := newWorld(t, cpuOnly)
	expect(t, "before the first response", map[string]int64{"a": 0, "b": 0}, w.score("a", "b"))
	w.measure(0, "cpu", map[string]float64{"a": 0.2, "b": 0.6})
	expect(t, "a node without samples", map[string]int64{"a": 80, "b": 40, "new": 60}, w.score("a", "b", "new"))
	w.measure(30*time.Second, "cpu", map[string]float64{"a": 0.2})
	expect(t, "a node that was missing once", map[string]int64{"a": 80, "b": 40}, w.score("a", "b"))
	w.measure(31*time.Second, "cpu", map[string]float64{"a": 0.2})
	expect(t, "a node with stale data", map[string]int64{"a": 80, "b": 80}, w.score("a", "b"))
	w.err = errors.New("unavailable")
	w.clock = w.clock.Add(time.Minute + time.Second)
	w.round("cpu")
	expect(t, "Prometheus is unavailable", map[string]int64{"a": 0, "b": 0}, w.score("a", "b"))
}

func TestFilterRejectsLoadedNodes(t *testing.T) {
	w := newWorld(t, server+`, "metrics": [{"name": "cpu", "maxPercent": 80}, {"name": "memory"}]}`)
	expect(t, "no data", "Success", w.filter("hot"))
	w.measure(0, "cpu", map[string]float64{"hot": 0.8, "cold": 0.79})
	w.measure(0, "memory", map[string]float64{"hot": 0.1, "cold": 1})
	expect(t, "over the limit", "UnschedulableAndUnresolvable: cpu load is 80% or more", w.filter("hot"))
	expect(t, "below the limit", "Success", w.filter("cold"))
	expect(t, "unknown", "Success", w.filter("new"))
	if status := w.Reserve(t.Context(), nil, newPod("web", "100m"), "cold"); status != nil {
		t.Fatal(status)
	}
	expect(t, "expected load counts", "UnschedulableAndUnresolvable: cpu load is 80% or more", w.filter("cold"))
}

func TestStaleNodesAreExcludedOnlyWhileOthersHaveData(t *testing.T) {
	w := newWorld(t, server+`, "stale": "Exclude", "metrics": [{"name": "cpu"}]}`)
	w.nodes = []*corev1.Node{newNode("a").Node(), newNode("b").Node()}
	expect(t, "no data yet", "Success", w.filter("b"))
	w.measure(0, "cpu", map[string]float64{"a": 0.2})
	expect(t, "a is known, b is not", "UnschedulableAndUnresolvable: no fresh data on cpu load", w.filter("b"))
	expect(t, "a is known", "Success", w.filter("a"))
	w.clock = w.clock.Add(2 * time.Minute)
	w.err = errors.New("unavailable")
	w.round("cpu")
	expect(t, "Prometheus is unavailable", "Success", w.filter("b"))
	w.err = nil
	w.measure(0, "cpu", map[string]float64{"10.9.9.9": 0.2})
	expect(t, "the label does not name a node", "Success", w.filter("b"))
}

func TestBurstOfPodsIsSpreadOverNodes(t *testing.T) {
	w := newWorld(t, cpuOnly)
	w.measure(0, "cpu", map[string]float64{"idle": 0.1, "busy": 0.5})
	placed := map[string]int{}
	for _, name := range strings.Split("abcdefghijkl", "") {
		scores := w.score("idle", "busy")
		best := "idle"
		if scores["busy"] > scores["idle"] {
			best = "busy"
		}
		placed[best]++
		if status := w.Reserve(t.Context(), nil, newPod(name, "400m"), best); status != nil {
			t.Fatal(status)
		}
	}
	// Ten percent of a node each: four fill the difference, the other eight are shared out.
	expect(t, "pods", map[string]int{"idle": 8, "busy": 4}, placed)
}

// This test verifies the declaration of Sign.
func TestResultsDependOnTheNodeAndNotOnThePod(t *testing.T) {
	w := newWorld(t, server+`, "metrics": [{"name": "cpu", "maxPercent": 80}]}`)
	w.measure(0, "cpu", map[string]float64{"a": 0.1, "b": 0.3, "full": 0.9})
	results := func(pod *corev1.Pod) map[string]string {
		all := map[string]string{}
		for _, name := range []string{"a", "b", "full"} {
			score, _ := w.Score(t.Context(), nil, pod, newNode(name))
			all[name] = fmt.Sprint(w.Filter(t.Context(), nil, pod, newNode(name)), score)
		}
		return all
	}
	small, large := newPod("small", "100m"), newPod("large", "3")
	before := results(small)
	expect(t, "another pod", before, results(large))
	for _, pod := range []*corev1.Pod{small, large} {
		part, status := w.Sign(t.Context(), pod)
		expect(t, "part of "+pod.Name, nil, part)
		expect(t, "status of "+pod.Name, "Success", status.String())
	}
	if status := w.Reserve(t.Context(), nil, large, "a"); status != nil {
		t.Fatal(status)
	}
	after := results(small)
	if after["a"] == before["a"] {
		t.Errorf("the pod on node a does not count: %v", after)
	}
	delete(before, "a")
	delete(after, "a")
	expect(t, "other nodes", before, after)
}

func TestExpectedLoadsDecreaseAsTheyAreMeasured(t *testing.T) {
	w := newWorld(t, cpuOnly)
	idle := map[string]float64{"a": 0}
	w.measure(0, "cpu", idle)
	pod := newPod("web", "2")
	w.Reserve(t.Context(), nil, pod, "a")
	expect(t, "expected", map[string]int64{"a": 50}, w.score("a"))
	w.measure(10*time.Minute, "cpu", idle)
	expect(t, "the expected load of an unbound pod does not decrease", map[string]int64{"a": 50}, w.score("a"))
	w.PostBind(t.Context(), nil, pod, "a")
	w.measure(30*time.Second, "cpu", idle)
	expect(t, "a quarter of the window is measured", map[string]int64{"a": 63}, w.score("a"))
	w.measure(30*time.Second, "cpu", idle)
	expect(t, "half", map[string]int64{"a": 75}, w.score("a"))
	w.err = errors.New("unavailable")
	w.clock = w.clock.Add(50 * time.Second)
	w.round("cpu")
	expect(t, "expected loads do not decrease without measurements", map[string]int64{"a": 75}, w.score("a"))
	w.err = nil
	w.measure(10*time.Second, "cpu", idle)
	expect(t, "all is measured", map[string]int64{"a": 100}, w.score("a"))
	expect(t, "expected loads left", 0, w.expected.pods.Len())
}

func TestExpectedLoadsAreRemovedMovedAndExpired(t *testing.T) {
	w := newWorld(t, cpuOnly)
	w.measure(0, "cpu", map[string]float64{"a": 0, "b": 0})
	pod := newPod("web", "2")
	w.Unreserve(t.Context(), nil, pod, "a")
	w.Reserve(t.Context(), nil, pod, "a")
	w.Reserve(t.Context(), nil, pod, "b")
	expect(t, "moved", map[string]int64{"a": 100, "b": 50}, w.score("a", "b"))
	w.Unreserve(t.Context(), nil, pod, "b")
	w.Unreserve(t.Context(), nil, pod, "b")
	expect(t, "removed", map[string]int64{"a": 100, "b": 100}, w.score("a", "b"))
	w.Reserve(t.Context(), nil, pod, "a")
	w.PostBind(t.Context(), nil, pod, "a")
	w.err = errors.New("unavailable")
	w.clock = w.clock.Add(4 * time.Minute)
	w.round("cpu")
	expect(t, "expected loads left while Prometheus is unavailable", 0, w.expected.pods.Len())
}

func TestExpectedLoadOfAPod(t *testing.T) {
	s := newWorld(t,
		server+
			`, "metrics": [{"name": "cpu"}, {"name": "memory"}, {"name": "gpu", "query": "g", "resource": "example.com/gpu"}, {"name": "disk", "query": "d", "podPercent": 2}]}`).settings
	quantities := func(cpu, gpu string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu),
			"example.com/gpu": resource.MustParse(gpu)}}
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{{Resources: quantities("2", "0")}},
		Containers:     []corev1.Container{{Resources: quantities("300m", "1")}, {Resources: quantities("200m", "1")}},
		Overhead:       corev1.ResourceList{"cpu": resource.MustParse("50m")},
	}}
	expect(t, "with requests", []float64{2050, 200 << 20, 2, 0.02}, s.expectedLoad(pod))
	expect(t, "without", []float64{100, 200 << 20, 0, 0.02}, s.expectedLoad(newPod("web", "")))
}

func TestOneLineIsLoggedForEachChangeOfState(t *testing.T) {
	w := newWorld(t, cpuOnly)
	w.nodes = []*corev1.Node{newNode("a").Node()}
	good := map[string]float64{"a": 0.5}
	w.measure(0, "cpu", good)
	w.measure(0, "cpu", good)
	w.err = errors.New("unavailable")
	w.round("cpu")
	w.round("cpu")
	w.err = nil
	w.measure(0, "cpu", good)
	w.measure(2*time.Minute, "cpu", map[string]float64{"10.0.0.1": 0.5})
	expect(t, "log", []string{
		"LoadAware reads load from Prometheus metric=cpu samples=1",
		"LoadAware cannot read load from Prometheus; nodes are neutral once the last data is older than staleAfter " +
			"err=unavailable metric=cpu",
		"LoadAware reads load from Prometheus metric=cpu samples=1",
		"LoadAware cannot read load from Prometheus; nodes are neutral once the last data is older than staleAfter " +
			`err=label instance, for example "10.0.0.1", is not the name, host name or internal address of any of the 1 nodes metric=cpu`,
	}, w.handle.Lines())
}

func TestReadDiscardsInvalidSamples(t *testing.T) {
	var samples []sample
	add := func(at float64, value string, instance string) {
		p := point{}
		if err := p.UnmarshalJSON([]byte(`[` + "1700000000" + `, "` + value + `"]`)); err != nil {
			t.Fatal(err)
		}
		p.at += at
		samples = append(samples, sample{Metric: map[string]string{"instance": instance}, Value: p})
	}
	add(0, "50", "Node-A:9100")
	add(0, "80", "node-a:9101")
	add(0, "70", "node-a")
	add(0, "NaN", "b")
	add(0, "+Inf", "b")
	add(0, "many", "b")
	add(-61, "10", "c")
	add(0, "-3", "[2001:DB8:0:0::1]:9100")
	add(0, "10", "")
	got, discarded := read(samples, Metric{NodeLabel: "instance", Full: 100}, time.Unix(1700000000-60, 0))
	expect(t, "readings", readings{"node-a": 0.8, "2001:db8::1": 0}, got)
	expect(t, "discarded", map[string]int{"duplicate": 2, "not_a_number": 3, "old": 1, "no_label": 1}, discarded)
}

func TestReadingIsFoundByNameHostNameOrAddress(t *testing.T) {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "worker-1.example.com",
			Labels: map[string]string{corev1.LabelHostname: "worker-1"}},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeExternalIP, Address: "203.0.113.1"}, {Type: corev1.NodeInternalIP,
				Address: "10.0.0.1"}, {Type: corev1.NodeHostName, Address: "w1"},
		}},
	}
	for _, test := range []struct {
		label string
		found bool
	}{
		{"worker-1.example.com:9100", true}, {"worker-1", true}, {"10.0.0.1:9100", true}, {"w1", true}, {"203.0.113.1",
			false}, {"10.0.0.10:9100", false},
	} {
		if _, found := (readings{nodeKey(test.label): 1}).of(n); found != test.found {
			t.Errorf("%s: found %v", test.label, found)
		}
	}
}

func TestReadingDoesNotAllocate(t *testing.T) {
	w := newWorld(t, server+`, "metrics": [{"name": "cpu", "maxPercent": 90}, {"name": "memory", "maxPercent": 90}]}`)
	w.measure(0, "cpu", map[string]float64{"a": 0.1})
	w.measure(0, "memory", map[string]float64{"a": 0.1})
	w.Reserve(t.Context(), nil, newPod("web", "100m"), "a")
	pod, ctx := newPod("next", "100m"), t.Context()
	var n scheduler.NodeInfo = newNode("a")
	if allocs := testing.AllocsPerRun(100,
		func() { w.Filter(ctx, nil, pod, n); _, _ = w.Score(ctx, nil, pod, n) }); allocs != 0 {
		t.Errorf("%v allocations per node", allocs)
	}
}

func BenchmarkFilterAndScore(b *testing.B) {
	w := newWorld(b, server+`, "metrics": [{"name": "cpu", "maxPercent": 90}, {"name": "memory", "maxPercent": 90}]}`)
	loads := map[string]float64{}
	for i := range 5000 {
		loads[fmt.Sprintf("10.0.%d.%d:9100", i/250, i%250)] = 0.5
	}
	worker := newNode("worker")
	object := worker.Node()
	object.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.3.7"}}
	w.nodes = []*corev1.Node{object}
	w.measure(0, "cpu", loads)
	w.measure(0, "memory", loads)
	w.Reserve(b.Context(), nil, newPod("web", "100m"), "worker")
	pod, ctx := newPod("next", "100m"), b.Context()
	var n scheduler.NodeInfo = worker
	b.ReportAllocs()
	for b.Loop() {
		w.Filter(ctx, nil, pod, n)
		_, _ = w.Score(ctx, nil, pod, n)
	}
}
