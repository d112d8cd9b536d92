package blockall

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

func podIn(namespace string) *corev1.Pod { return plugintest.NewPod(namespace, "web", nil) }

var anyNode = plugintest.NewNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}})

func TestFilterRejectsPodsOfBlockedNamespaces(t *testing.T) {
	for _, test := range []struct {
		name, args, namespace string
		want                  string
	}{
		{"blocks every pod", ``, "default", "UnschedulableAndUnresolvable: every node is blocked by BlockAll"},
		{"uses the message", `{"message": "drained until noon"}`, "default",
			"UnschedulableAndUnresolvable: drained until noon"},
		{"uses the longest message", `{"message": "` + strings.Repeat("x", 256) + `"}`, "default",
			"UnschedulableAndUnresolvable: " + strings.Repeat("x", 256)},
		{"blocks the listed namespaces", `{"namespaces": ["a", "b"]}`, "b",
			"UnschedulableAndUnresolvable: every node is blocked by BlockAll"},
		{"ignores other namespaces", `{"namespaces": ["a", "b"]}`, "c", "Success"},
	} {
		t.Run(test.name, func(t *testing.T) {
			plugin, err := New(t.Context(), scheduler.NewArguments([]byte(test.args)), &plugintest.Handle{})
			if err != nil {
				t.Fatal(err)
			}
			got := plugin.Filter(t.Context(), nil, podIn(test.namespace), anyNode)
			if diff := cmp.Diff(test.want, got.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPodsAreSignedByWhetherTheyAreBlocked(t *testing.T) {
	plugin, err := New(t.Context(), scheduler.NewArguments([]byte(`{"namespaces": ["a", "b"]}`)), &plugintest.Handle{})
	if err != nil {
		t.Fatal(err)
	}
	signed := map[string]interface{}{}
	for _, namespace := range []string{"a", "b", "c"} {
		part, status := plugin.Sign(t.Context(), podIn(namespace))
		if !status.IsSuccess() {
			t.Errorf("%s: %v", namespace, status)
		}
		signed[namespace] = part
	}
	if signed["a"] != signed["b"] || signed["a"] == signed["c"] {
		t.Errorf("got %v", signed)
	}
}

func TestInvalidArgumentsNameTheField(t *testing.T) {
	for _, test := range []struct{ name, args, want string }{
		{"unknown field", `{"namespace": "a"}`, `"namespace"`},
		{"duplicate field", `{"message": "a", "message": "b"}`, `"message"`},
		{"wrong type", `{"namespaces": "a"}`, "namespaces"},
		{"invalid namespace", `{"namespaces": ["a", "B!"]}`, `namespaces[1]: "B!"`},
		{"empty message", `{"message": " "}`, "message: must not be empty"},
		{"long message", `{"message": "` + strings.Repeat("x", 257) + `"}`, "message: has 257 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for what, err := range map[string]error{
				"New":   second(New(t.Context(), scheduler.NewArguments([]byte(test.args)), &plugintest.Handle{})),
				"Rules": second(Rules(scheduler.NewArguments([]byte(test.args)))),
			} {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("%s: %v, want %q in it", what, err, test.want)
				}
			}
		})
	}
}

func TestNewRefusesAMetricOfAnotherType(t *testing.T) {
	h := &plugintest.Handle{}
	h.Metrics().MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "pmk_sched_blockall_nodes_filtered_total"}))
	if plugin, err := New(t.Context(), scheduler.Arguments{}, h); plugin != nil || err == nil {
		t.Errorf("got %v, %v", plugin, err)
	}
}

const decision = "BlockAll rejected a node namespace=default pod=web node=node-1"

func TestTwoProfilesShareTheMetricAndLogEachDecision(t *testing.T) {
	h := &plugintest.Handle{Level: 5}
	for range 2 {
		plugin, err := New(t.Context(), scheduler.Arguments{}, h)
		if err != nil {
			t.Fatal(err)
		}
		plugin.Filter(t.Context(), nil, podIn("default"), anyNode)
	}
	if diff := cmp.Diff([]string{decision, decision}, h.Lines()); diff != "" {
		t.Error(diff)
	}
	families, err := h.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if got := families[0].GetMetric()[0].GetCounter().GetValue(); got != 2 {
		t.Errorf("%s is %v, want 2", families[0].GetName(), got)
	}
}

func second[T any](_ T, err error) error { return err }
