package timestamp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

// serve returns a handle whose API server answers with status, and the last request.
func serve(t *testing.T, status int) (*plugintest.Handle, *string) {
	t.Helper()
	last := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		last = r.Method + " " + r.URL.Path + " " + r.Header.Get("Content-Type") + " " + string(body)
		if err != nil {
			last = err.Error()
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"kind":"Pod","apiVersion":"v1"}`)
	}))
	t.Cleanup(server.Close)
	return &plugintest.Handle{Config: &rest.Config{Host: server.URL}}, &last
}

func TestPreBindPatchesOnlyTheAnnotationAndTheUID(t *testing.T) {
	h, last := serve(t, http.StatusOK)
	plugin, err := New(t.Context(), scheduler.NewArguments([]byte(`{"annotation": "example.com/at"}`)), h)
	if err != nil {
		t.Fatal(err)
	}
	plugin.now = func() time.Time { return time.Unix(1700000000, 123456789) }
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u-1", ResourceVersion: "42"}}
	if status := plugin.PreBind(t.Context(), nil, pod, "node-1"); !status.IsSuccess() {
		t.Fatal(status)
	}
	want := `PATCH /api/v1/namespaces/shop/pods/web application/merge-patch+json {"metadata":{"annotations":{"example.com/at":"1700000000123456789"},"uid":"u-1"}}`
	if diff := cmp.Diff(want, *last); diff != "" {
		t.Error(diff)
	}
	if got := stamps(t, h); got["ok"] != 1 || got["error"] != 0 {
		t.Errorf("stamps by result: %v", got)
	}
}

// stamps returns the numbers of patches by result.
func stamps(t *testing.T, h *plugintest.Handle) map[string]float64 {
	t.Helper()
	families, err := h.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if strings.HasSuffix(family.GetName(), "_stamps_total") {
				found[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	return found
}

func TestOnFailureDecidesWhetherThePodIsBound(t *testing.T) {
	for _, test := range []struct {
		args string
		want scheduler.Code
	}{
		{``, scheduler.CodeError},
		{`{"onFailure": "Retry"}`, scheduler.CodeError},
		{`{"onFailure": "Ignore"}`, scheduler.CodeSuccess},
	} {
		h, _ := serve(t, http.StatusForbidden)
		plugin, err := New(t.Context(), scheduler.NewArguments([]byte(test.args)), h)
		if err != nil {
			t.Fatal(err)
		}
		status := plugin.PreBind(t.Context(), nil, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}},
			"node-1")
		if status.Code() != test.want {
			t.Errorf("%s: %s, want %s", test.args, status, test.want)
		}
		if err := status.Err(); err != nil &&
			!strings.Contains(err.Error(), "set annotation Scheduler-Timestamp on pod shop/web") {
			t.Error(err)
		}
		if got := stamps(t, h); got["error"] != 1 || got["ok"] != 0 {
			t.Errorf("%s: stamps by result: %v", test.args, got)
		}
	}
}

func TestPreBindEndsWithItsContext(t *testing.T) {
	h, _ := serve(t, http.StatusOK)
	plugin, err := New(t.Context(), scheduler.Arguments{}, h)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	status := plugin.PreBind(ctx, nil, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}},
		"node-1")
	if !errors.Is(status.Err(), context.Canceled) {
		t.Error(status)
	}
}

func TestInvalidArgumentsNameTheField(t *testing.T) {
	for _, test := range []struct{ name, args, want string }{
		{"unknown field", `{"key": "a"}`, `"key"`},
		{"wrong type", `{"annotation": 1}`, "annotation"},
		{"invalid key", `{"annotation": "a b"}`, `annotation: "a b"`},
		{"empty key", `{"annotation": ""}`, `annotation: ""`},
		{"two slashes", `{"annotation": "a/b/c"}`, "annotation:"},
		{"long key", `{"annotation": "` + strings.Repeat("a", 64) + `"}`, "annotation:"},
		{"unknown value", `{"onFailure": "retry"}`, `onFailure: "retry"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Rules(scheduler.NewArguments([]byte(test.args)))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q in it", err, test.want)
			}
			if plugin, err := New(t.Context(), scheduler.NewArguments([]byte(test.args)), &plugintest.Handle{}); plugin != nil ||
				err == nil {
				t.Error("New accepts it")
			}
		})
	}
}

// withoutClient is the handle of an extender without a cluster.
type withoutClient struct{ plugintest.Handle }

func (*withoutClient) ClientSet() kubernetes.Interface { return nil }

func TestNewNeedsAClusterAndItsMetrics(t *testing.T) {
	taken := &plugintest.Handle{}
	taken.Metrics().MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "pmk_sched_timestamp_stamps_total"}))
	for want, h := range map[string]scheduler.Handle{
		"Timestamp needs a cluster: the scheduler has no client": &withoutClient{},
		"register metric pmk_sched_timestamp_stamps_total: ":     taken,
	} {
		plugin, err := New(t.Context(), scheduler.Arguments{}, h)
		if plugin != nil || err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, %v; want %s", plugin, err, want)
		}
	}
}

func TestPatchesAreLoggedAndTimed(t *testing.T) {
	for status, want := range map[int]string{
		http.StatusOK: "Timestamp annotated a pod namespace=shop pod=web node=node-1 annotation=Scheduler-Timestamp " +
			"value=1000000000",
		http.StatusForbidden: "Timestamp binds a pod without the annotation err=set annotation Scheduler-Timestamp on pod " +
			"shop/web: ",
	} {
		h, _ := serve(t, status)
		h.Level = 5
		plugin, err := New(t.Context(), scheduler.NewArguments([]byte(`{"onFailure": "Ignore"}`)), h)
		if err != nil {
			t.Fatal(err)
		}
		seconds := int64(0)
		plugin.now = func() time.Time { seconds++; return time.Unix(seconds, 0) }
		plugin.PreBind(t.Context(), nil, plugintest.NewPod("shop", "web", nil), "node-1")
		if lines := h.Lines(); len(lines) != 1 || !strings.HasPrefix(lines[0], want) {
			t.Errorf("status %d: the log is %q", status, lines)
		}
		families, err := h.Registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			if m := family.GetMetric()[0].GetHistogram(); m != nil && (m.GetSampleCount() != 1 || m.GetSampleSum() != 1) {
				t.Errorf("status %d: %d patches took %v s", status, m.GetSampleCount(), m.GetSampleSum())
			}
		}
	}
}

func TestRulesAllowOnlyToPatchPods(t *testing.T) {
	got, err := Rules(scheduler.Arguments{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"},
		Verbs: []string{"patch"}}}, got); diff != "" {
		t.Error(diff)
	}
}
