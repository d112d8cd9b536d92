package loadaware

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

func TestDefaultsAreSet(t *testing.T) {
	s, err := decode(scheduler.NewArguments(
		[]byte(
			`{"prometheus": {"url": "http://prometheus:9090/"}, "metrics": [{"name": "cpu", "nodeLabel": "node"}, {"name": "memory", "maxPercent": 90}]}`)))
	if err != nil {
		t.Fatal(err)
	}
	one := int64(1)
	want := []Metric{
		{Name: "cpu", Query: `1 - avg by (node) (rate(node_cpu_seconds_total{mode="idle"}[120s]))`, NodeLabel: "node",
			Full: 1, Weight: &one, Resource: "cpu"},
		{Name: "memory",
			Query:     `1 - min by (instance) (node_memory_MemAvailable_bytes) / max by (instance) (node_memory_MemTotal_bytes)`,
			NodeLabel: "instance", Full: 1, Weight: &one, MaxPercent: 90, Resource: "memory"},
	}
	if diff := cmp.Diff(want, s.Metrics); diff != "" {
		t.Error(diff)
	}
	if s.interval != 15*time.Second || s.staleAfter != time.Minute || s.window != 2*time.Minute ||
		s.timeout != 5*time.Second || s.milliCPU != 100 || s.memory != 200<<20 {
		t.Errorf("%+v", s)
	}
	if got := s.base.String(); got != "http://prometheus:9090/api/v1/query" {
		t.Error(got)
	}
}

func TestInvalidArgumentsNameTheField(t *testing.T) {
	const open = `{"prometheus": {"url": "http://prometheus:9090"}, `
	for _, test := range []struct{ name, args, want string }{
		{"empty", ``, "prometheus.url: is required"},
		{"unknown field", open + `"step": "1s"}`, `"step"`},
		{"unknown field below", `{"prometheus": {"url": "http://p", "user": "x"}}`, `"user"`},
		{"duplicate field", `{"prometheus": {"url": "http://p", "url": "http://q"}}`, "prometheus.url"},
		{"no URL", `{"prometheus": {"url": "prometheus:9090"}}`, "prometheus.url: must be an http"},
		{"password in the URL", `{"prometheus": {"url": "http://a:secret@p"}}`,
			"prometheus.url: must not have a user or password"},
		{"query in the URL", `{"prometheus": {"url": "http://p?a=b"}}`, "prometheus.url:"},
		{"TLS without https", `{"prometheus": {"url": "http://p", "serverName": "q"}}`, "need an https URL"},
		{"unencrypted token", `{"prometheus": {"url": "http://p", "bearerTokenFile": "/t"}}`,
			"prometheus.bearerTokenFile: must not be used with an http URL"},
		{"relative file", `{"prometheus": {"url": "https://p", "caFile": "ca.pem"}}`,
			"prometheus.caFile: ca.pem must be an absolute path"},
		{"certificate without key", `{"prometheus": {"url": "https://p", "certFile": "/c"}}`,
			"prometheus.certFile and prometheus.keyFile"},
		{"ca and caFile", `{"prometheus": {"url": "https://p", "caFile": "/c", "ca": "x"}}`,
			"prometheus.ca: must not be set together with caFile"},
		{"ca without verification", `{"prometheus": {"url": "https://p", "caFile": "/c", "insecureSkipVerify": true}}`,
			"prometheus.insecureSkipVerify:"},
		{"too small", `{"prometheus": {"url": "http://p", "maxBytes": 1}}`, "prometheus.maxBytes: 1"},
		{"invalid duration", open + `"interval": "15"}`, `interval: "15" is not a duration`},
		{"negative duration", open + `"interval": "-1s"}`, "interval: -1s must be between"},
		{"staleAfter below the interval", open + `"staleAfter": "10s"}`,
			"staleAfter: 10s must not be shorter than the interval"},
		{"unknown value", open + `"stale": "exclude"}`, `stale: "exclude"`},
		{"invalid quantity", open + `"expectedLoad": {"cpu": "much"}}`, `expectedLoad.cpu: "much"`},
		{"no name", open + `"metrics": [{"query": "up"}]}`, `metrics[0].name: ""`},
		{"same name", open + `"metrics": [{"name": "cpu"}, {"name": "cpu"}]}`, `metrics[1].name: duplicate "cpu"`},
		{"no query", open + `"metrics": [{"name": "disk"}]}`, "metrics[0].query: is required"},
		{"wrong label", open + `"metrics": [{"name": "cpu", "nodeLabel": "a-b"}]}`, `metrics[0].nodeLabel: "a-b"`},
		{"negative weight", open + `"metrics": [{"name": "cpu", "weight": -1}]}`, "metrics[0].weight: -1"},
		{"negative full", open + `"metrics": [{"name": "cpu", "full": -1}]}`, "metrics[0].full: -1"},
		{"negative limit", open + `"metrics": [{"name": "cpu", "maxPercent": -1}]}`, "metrics[0].maxPercent: -1"},
		{"resource and podPercent", open + `"metrics": [{"name": "cpu", "resource": "cpu", "podPercent": 1}]}`,
			"metrics[0].podPercent:"},
		{"no weight", open + `"metrics": [{"name": "cpu", "weight": 0}]}`,
			"metrics: at least one must have a weight or maxPercent"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Rules(scheduler.NewArguments([]byte(test.args)))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q in it", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error shows the password: %v", err)
			}
		})
	}
}
