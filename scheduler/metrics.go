package scheduler

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Register registers a collector and returns it. If the collector is already registered, for
// another profile, Register returns the existing one, so that the profiles share it. If r is nil,
// the collector is not registered.
func Register(r prometheus.Registerer, c prometheus.Collector) (prometheus.Collector, error) {
	if r == nil {
		return c, nil
	}
	err := r.Register(c)
	var registered prometheus.AlreadyRegisteredError
	if errors.As(err, &registered) {
		return registered.ExistingCollector, nil
	}
	return c, err
}

// Metrics registers a plugin's metrics, which all profiles share. Err returns the first failure.
type Metrics struct {
	registerer prometheus.Registerer
	prefix     string
	err        error
}

// NewMetrics returns a plugin's metrics. Their names begin with prefix.
func NewMetrics(r prometheus.Registerer, prefix string) *Metrics {
	return &Metrics{registerer: r, prefix: prefix}
}

// Err returns the first failure to register a metric.
func (m *Metrics) Err() error { return m.err }

// Counter registers a counter.
func (m *Metrics) Counter(name, help string, labels ...string) *prometheus.CounterVec {
	c, err := Register(m.registerer, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: m.prefix + name, Help: help,
	}, labels))
	vec, ok := c.(*prometheus.CounterVec)
	m.record(name, ok, err)
	return vec
}

// Gauge registers a gauge.
func (m *Metrics) Gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	c, err := Register(m.registerer, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: m.prefix + name, Help: help,
	}, labels))
	vec, ok := c.(*prometheus.GaugeVec)
	m.record(name, ok, err)
	return vec
}

// Histogram registers a histogram.
func (m *Metrics) Histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	c, err := Register(m.registerer, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: m.prefix + name, Help: help, Buckets: buckets,
	}, labels))
	vec, ok := c.(*prometheus.HistogramVec)
	m.record(name, ok, err)
	return vec
}

func (m *Metrics) record(name string, ok bool, err error) {
	if err == nil && !ok {
		err = errors.New("a metric of another type has this name")
	}
	if err != nil && m.err == nil {
		m.err = fmt.Errorf("register metric %s%s: %w", m.prefix, name, err)
	}
}
