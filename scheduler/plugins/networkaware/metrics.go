package networkaware

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/customresource"
)

// metrics are the metrics of one resource. Profiles that read the same resource share them.
type metrics struct {
	up       prometheus.Gauge
	nodes    prometheus.Gauge
	unknown  prometheus.Counter
	invalid  prometheus.Counter
	failures *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer, resource string) (*metrics, error) {
	up, err := gauge(r, "up", "1 if the resource can be read, by resource.")
	if err != nil {
		return nil, err
	}
	nodes, err := gauge(r, "nodes", "Nodes that have a value, by resource.")
	if err != nil {
		return nil, err
	}
	unknown, err := counter(r, "nodes_without_value_total", "Feasible nodes without a value, summed over all scheduling attempts, by resource.", "resource")
	if err != nil {
		return nil, err
	}
	invalid, err := counter(r, "objects_invalid_total", "Objects that could not be parsed, by resource.", "resource")
	if err != nil {
		return nil, err
	}
	failures, err := counter(r, "failures_total", "Lists and watches that failed, by resource and kind: missing, forbidden or unreachable.", "resource", "kind")
	if err != nil {
		return nil, err
	}
	m := &metrics{
		up: up.WithLabelValues(resource), nodes: nodes.WithLabelValues(resource),
		unknown: unknown.WithLabelValues(resource), invalid: invalid.WithLabelValues(resource),
	}
	m.failures, err = failures.CurryWith(prometheus.Labels{"resource": resource})
	return m, err
}

// observe counts the lists and watches that failed, by the state of the resource.
func (m *metrics) observe(state customresource.State) {
	if state == customresource.Readable {
		m.up.Set(1)
		return
	}
	m.up.Set(0)
	m.failures.WithLabelValues(string(state)).Inc()
}

func gauge(r prometheus.Registerer, name, help string) (*prometheus.GaugeVec, error) {
	name = "pmk_sched_networkaware_" + name
	c, err := scheduler.Register(r, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"resource"}))
	vec, ok := c.(*prometheus.GaugeVec)
	return vec, registered(name, ok, err)
}

func counter(r prometheus.Registerer, name, help string, labels ...string) (*prometheus.CounterVec, error) {
	name = "pmk_sched_networkaware_" + name
	c, err := scheduler.Register(r, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels))
	vec, ok := c.(*prometheus.CounterVec)
	return vec, registered(name, ok, err)
}

func registered(name string, ok bool, err error) error {
	if err == nil && !ok {
		err = fmt.Errorf("a metric of another type has this name")
	}
	if err != nil {
		return fmt.Errorf("register metric %s: %w", name, err)
	}
	return nil
}
