package networkaware

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/customresource"
)

// metrics are one resource's metrics. Profiles that read the same resource share them.
type metrics struct {
	up       prometheus.Gauge
	nodes    prometheus.Gauge
	unknown  prometheus.Counter
	invalid  prometheus.Counter
	failures *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer, resource string) (*metrics, error) {
	all := scheduler.NewMetrics(r, "pmk_sched_networkaware_")
	up := all.Gauge("up", "1 if the resource can be read, by resource.", "resource")
	nodes := all.Gauge("nodes", "Nodes that have a value, by resource.", "resource")
	unknown := all.Counter("nodes_without_value_total",
		"Feasible nodes without a value, summed over all scheduling attempts, by resource.", "resource")
	invalid := all.Counter("objects_invalid_total", "Objects that could not be parsed, by resource.", "resource")
	failures := all.Counter("failures_total",
		"Lists and watches that failed, by resource and kind: missing, forbidden or unreachable.", "resource", "kind")
	if all.Err() != nil {
		return nil, all.Err()
	}
	ofResource, err := failures.CurryWith(prometheus.Labels{"resource": resource})
	return &metrics{
		up: up.WithLabelValues(resource), nodes: nodes.WithLabelValues(resource), failures: ofResource,
		unknown: unknown.WithLabelValues(resource), invalid: invalid.WithLabelValues(resource),
	}, err
}

// observe counts the lists and watches that failed, by the resource's state.
func (m *metrics) observe(state customresource.State) {
	if state == customresource.Readable {
		m.up.Set(1)
		return
	}
	m.up.Set(0)
	m.failures.WithLabelValues(string(state)).Inc()
}
