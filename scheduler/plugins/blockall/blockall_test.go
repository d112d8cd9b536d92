package blockall

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

type handle struct {
	scheduler.Handle
	registry *prometheus.Registry
}

func (h handle) Metrics() prometheus.Registerer              { return h.registry }
func (h handle) Logger(ctx context.Context) scheduler.Logger { return scheduler.NewLogger(ctx, nil) }

func newHandle() handle { return handle{registry: prometheus.NewRegistry()} }

func podIn(namespace string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
}

func TestFilter(t *testing.T) {
	for _, test := range []struct {
		name, args, namespace string
		want                  string
	}{
		{"blocks every pod", ``, "default", "UnschedulableAndUnresolvable: every node is blocked by BlockAll"},
		{"says why", `{"message": "drained until noon"}`, "default", "UnschedulableAndUnresolvable: drained until noon"},
		{"blocks the namespaces that were named", `{"namespaces": ["a", "b"]}`, "b", "UnschedulableAndUnresolvable: every node is blocked by BlockAll"},
		{"leaves other namespaces alone", `{"namespaces": ["a", "b"]}`, "c", "Success"},
	} {
		t.Run(test.name, func(t *testing.T) {
			plugin, err := New(t.Context(), scheduler.NewArguments([]byte(test.args)), newHandle())
			if err != nil {
				t.Fatal(err)
			}
			got := plugin.Filter(t.Context(), nil, podIn(test.namespace), nil)
			if diff := cmp.Diff(test.want, got.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWrongArgumentsNameTheField(t *testing.T) {
	for _, test := range []struct{ name, args, want string }{
		{"unknown field", `{"namespace": "a"}`, `"namespace"`},
		{"duplicate field", `{"message": "a", "message": "b"}`, `"message"`},
		{"wrong type", `{"namespaces": "a"}`, "namespaces"},
		{"no name of a namespace", `{"namespaces": ["a", "B!"]}`, `namespaces[1]: "B!"`},
		{"empty message", `{"message": " "}`, "message: must not be empty"},
		{"long message", `{"message": "` + strings.Repeat("x", 257) + `"}`, "message: has 257 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for what, err := range map[string]error{
				"New":   second(New(t.Context(), scheduler.NewArguments([]byte(test.args)), newHandle())),
				"Rules": second(Rules(scheduler.NewArguments([]byte(test.args)))),
			} {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("%s: %v, want %q in it", what, err, test.want)
				}
			}
		})
	}
}

func TestTwoProfilesCountTogether(t *testing.T) {
	h := newHandle()
	for range 2 {
		plugin, err := New(t.Context(), scheduler.Arguments{}, h)
		if err != nil {
			t.Fatal(err)
		}
		plugin.Filter(t.Context(), nil, podIn("default"), nil)
	}
	families, err := h.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if got := families[0].GetMetric()[0].GetCounter().GetValue(); got != 2 {
		t.Errorf("%s is %v, want 2", families[0].GetName(), got)
	}
}

func second[T any](_ T, err error) error { return err }
