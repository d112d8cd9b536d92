package networkaware

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/customresource"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

func TestMetricsAndLogShowWhatIsKnown(t *testing.T) {
	n, h := newPlugin(t, minimal+`}`), &plugintest.Handle{Level: 10}
	n.logs = h.Logger
	var err error
	if n.metrics, err = newMetrics(h.Metrics(), n.settings.name()); err != nil {
		t.Fatal(err)
	}
	const prefix, resource = "pmk_sched_networkaware_", " networkmetrics.network.example.com"
	expect := func(when string, want map[string]float64) {
		t.Helper()
		families, err := h.Registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, family := range families {
			for _, m := range family.GetMetric() {
				name := strings.TrimPrefix(family.GetName(), prefix)
				for _, label := range m.GetLabel() {
					name += " " + label.GetValue()
				}
				if value := m.GetGauge().GetValue() + m.GetCounter().GetValue(); value != 0 {
					got[strings.TrimSuffix(name, resource)] = value
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	expect("at first", map[string]float64{})
	n.metrics.observe(customresource.Readable)
	expect("when the resource can be read", map[string]float64{"up": 1})
	n.metrics.observe(customresource.Missing)
	expect("when it cannot", map[string]float64{"failures_total missing": 1})

	state, pod := plugintest.NewState(), plugintest.NewPod("a", "p", nil)
	if status := n.PreScore(t.Context(), state, pod, nodes(2)); status.Code() != scheduler.CodeSkip {
		t.Errorf("without values: %v", status)
	}
	for name, value := range map[string]interface{}{"node-0": int64(10), "node-1": int64(20), "node-2": "fast"} {
		if err := n.set(metric(name, value)); (err != nil) != (value == "fast") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, node := range nodes(3)[2:] {
		n.PreScore(t.Context(), state, pod, append(nodes(2), node))
		n.Score(t.Context(), state, pod, node)
	}
	n.Score(t.Context(), state, pod, nodes(1)[0])
	expect("with values", map[string]float64{"failures_total missing": 1, "nodes": 2, "objects_invalid_total": 1,
		"nodes_without_value_total": 3})
	n.remove("", "node-0")
	if _, ok := n.values.of("node-0"); ok {
		t.Error("a deleted object has a value")
	}
	expect("when an object is deleted", map[string]float64{"failures_total missing": 1, "nodes": 1,
		"objects_invalid_total": 1, "nodes_without_value_total": 3})
	about := " namespace=a pod=p resource=networkmetrics.network.example.com"
	if diff := cmp.Diff([]string{
		"NetworkAware has no values of the nodes" + about + " nodes=2",
		"NetworkAware scores nodes" + about + " best=10 worst=20 nodes=3 withValue=2",
		"NetworkAware scored a node namespace=a pod=p node=node-2 known=false value=0 score=50",
		"NetworkAware scored a node namespace=a pod=p node=node-0 known=true value=10 score=100",
	}, h.Lines()); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

func TestNewRefusesWhatItCannotUse(t *testing.T) {
	taken := prometheus.NewRegistry()
	taken.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "pmk_sched_networkaware_up"}))
	for name, c := range map[string]struct {
		args string
		h    *plugintest.Handle
		want string
	}{
		"no resource":              {"", &plugintest.Handle{}, "version: is required"},
		"a metric of another type": {minimal + "}", &plugintest.Handle{Registry: taken}, "register metrics of NetworkAware"},
		"what it needs":            {minimal + "}", &plugintest.Handle{}, ""},
	} {
		n, err := New(t.Context(), scheduler.NewArguments([]byte(c.args)), c.h)
		switch {
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %s", name, err, c.want)
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want == "":
			node := plugintest.NewNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
			if score, status := n.Score(t.Context(), plugintest.NewState(), &corev1.Pod{}, node); score != 0 || status != nil {
				t.Errorf("without PreScore: %d %v", score, status)
			}
		}
	}
}
