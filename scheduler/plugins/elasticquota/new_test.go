package elasticquota

import (
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

// limited is a handle without a client, or with another configuration than that of its client.
type limited struct {
	plugintest.Handle
	noClient bool
	config   *rest.Config
}

func (l *limited) ClientSet() kubernetes.Interface {
	if l.noClient {
		return nil
	}
	return l.Handle.ClientSet()
}

func (l *limited) KubeConfig() (*rest.Config, error) {
	if l.config == nil {
		return nil, errors.New("no kubeconfig")
	}
	return l.config, nil
}

func TestNewNeedsWhatTheArgumentsUse(t *testing.T) {
	taken := prometheus.NewRegistry()
	taken.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "pmk_sched_elasticquota_evictions_total"}))
	other := prometheus.NewRegistry()
	other.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "pmk_sched_elasticquota_amount"}))
	server := &rest.Config{Host: "http://apiserver.invalid"}
	for name, c := range map[string]struct {
		args   string
		handle *limited
		want   string
	}{
		"no cluster": {"elasticQuotas: Ignore", &limited{noClient: true},
			"ElasticQuota needs a cluster: the scheduler has no client"},
		"no kubeconfig":                      {"elasticQuotas: Ignore", &limited{}, "ElasticQuota evicts pods: no kubeconfig"},
		"no kubeconfig, and nobody evicts":   {"{elasticQuotas: Ignore, preemption: Never}", &limited{}, ""},
		"no kubeconfig, and quotas are read": {"preemption: Never", &limited{}, "no kubeconfig"},
		"a kubeconfig that is wrong": {"elasticQuotas: Ignore", &limited{config: &rest.Config{
			Host: "https://apiserver.invalid", TLSClientConfig: rest.TLSClientConfig{CAFile: "none.crt"}}},
			"create client for evictions: "},
		"a metric of another type": {"elasticQuotas: Ignore", &limited{Handle: plugintest.Handle{Registry: taken},
			config: server}, "register metrics of ElasticQuota: register metric pmk_sched_elasticquota_evictions_total"},
		"another metric of another type": {"elasticQuotas: Ignore", &limited{Handle: plugintest.Handle{Registry: other},
			config: server}, "register metrics of ElasticQuota: "},
		"a cluster": {"elasticQuotas: Ignore", &limited{config: server}, ""},
	} {
		p, err := New(t.Context(), scheduler.NewArguments([]byte(c.args)), c.handle)
		switch {
		case c.want == "" && (err != nil || p.first != nil || (p.evict != nil) != (c.handle.config != nil)):
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}
