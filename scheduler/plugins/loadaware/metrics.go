package loadaware

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// metrics are shared by all profiles: counters of the same metric are summed, gauges show the last value.
type metrics struct {
	queries   *prometheus.CounterVec
	discarded *prometheus.CounterVec
	filtered  *prometheus.CounterVec
	up        *prometheus.GaugeVec
	success   *prometheus.GaugeVec
	nodes     *prometheus.GaugeVec
	duration  *prometheus.HistogramVec
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	reg := registration{registerer: r}
	m := &metrics{
		queries:   reg.counter("queries_total", "Queries to Prometheus, by metric and result.", "metric", "result"),
		discarded: reg.counter("samples_discarded_total", "Discarded samples, by metric and reason.", "metric", "reason"),
		filtered:  reg.counter("nodes_filtered_total", "Rejected nodes, summed over all scheduling attempts, by metric and reason.", "metric", "reason"),
		up:        reg.gauge("up", "1 if the last query succeeded, by metric.", "metric"),
		success:   reg.gauge("last_success_timestamp_seconds", "Time of the last successful query, by metric.", "metric"),
		nodes:     reg.gauge("nodes", "Nodes of the cluster, by metric and whether their load is fresh or stale.", "metric", "data"),
	}
	duration, err := scheduler.Register(r, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "pmk_sched_loadaware_query_duration_seconds",
		Help:    "Duration of queries to Prometheus, by metric.",
		Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
	}, []string{"metric"}))
	reg.note("query_duration_seconds", err)
	m.duration, _ = duration.(*prometheus.HistogramVec)
	if m.duration == nil {
		reg.note("query_duration_seconds", errOther)
	}
	return m, reg.err
}

var errOther = fmt.Errorf("a metric of another type has this name")

// registration registers collectors and keeps the first error.
type registration struct {
	registerer prometheus.Registerer
	err        error
}

func (r *registration) note(name string, err error) {
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("register metric pmk_sched_loadaware_%s: %w", name, err)
	}
}

func (r *registration) counter(name, help string, labels ...string) *prometheus.CounterVec {
	c, err := scheduler.Register(r.registerer, prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pmk_sched_loadaware_" + name, Help: help}, labels))
	r.note(name, err)
	vec, ok := c.(*prometheus.CounterVec)
	if !ok {
		r.note(name, errOther)
	}
	return vec
}

func (r *registration) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	c, err := scheduler.Register(r.registerer, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "pmk_sched_loadaware_" + name, Help: help}, labels))
	r.note(name, err)
	vec, ok := c.(*prometheus.GaugeVec)
	if !ok {
		r.note(name, errOther)
	}
	return vec
}
