package extender

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const namespace = "pmk_extender"

type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	nodes    *prometheus.CounterVec
	bytes    *prometheus.CounterVec
	panics   *prometheus.CounterVec
}

func newMetrics(registry *prometheus.Registry) (*metrics, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
	}
	m := &metrics{
		requests: counter("requests_total",
			"Requests, by verb and result: ok, error (reported to the scheduler), invalid (could not be decoded), canceled "+
				"(the scheduler gave up).", "verb", "result"),
		nodes: counter("nodes_total",
			"Nodes in requests (in) and nodes that fit, or were scored, in answers (out), by verb.", "verb", "direction"),
		bytes:  counter("bytes_total", "Bytes of bodies of requests (in) and answers (out), by verb.", "verb", "direction"),
		panics: counter("panics_total", "Panics of policies that were caught, by policy.", "policy"),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Name: "request_duration_seconds",
			Help:    "Time from a request's first byte to the answer's last, by verb.",
			Buckets: prometheus.ExponentialBuckets(0.00025, 2, 16),
		}, []string{"verb"}),
	}
	return m, register(registry, m.requests, m.nodes, m.bytes, m.panics, m.duration)
}

// registerReady adds a gauge for each policy that implements ReadyPolicy.
func registerReady(registry *prometheus.Registry, policies []*served) error {
	for _, p := range policies {
		if p.ready == nil {
			continue
		}
		err := register(registry, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: namespace, Name: "policy_ready", Help: "1 if the policy has the data that it needs.",
			ConstLabels: prometheus.Labels{"policy": p.name},
		}, func() float64 {
			if p.ready.Ready() != nil {
				return 0
			}
			return 1
		}))
		if err != nil {
			return err
		}
	}
	return nil
}

func register(registry *prometheus.Registry, collectors ...prometheus.Collector) error {
	for _, c := range collectors {
		err := registry.Register(c)
		if errors.As(err, new(prometheus.AlreadyRegisteredError)) {
			return fmt.Errorf("register the extender's metrics: the registry serves another extender already")
		}
		if err != nil {
			return fmt.Errorf("register the extender's metrics: %w", err)
		}
	}
	return nil
}

// cacheMetrics are the size and the age of the cache.
type cacheMetrics struct {
	failures *prometheus.CounterVec
	last     map[string]*atomic.Int64 // when something changed, in nanoseconds, by kind
}

func newCacheMetrics(registry *prometheus.Registry, c *Cache) (*cacheMetrics, error) {
	m := &cacheMetrics{
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "cache_watch_failures_total",
			Help: "Lists and watches of the API server that failed, by kind.",
		}, []string{"kind"}),
		last: map[string]*atomic.Int64{"nodes": {}, "pods": {}},
	}
	objects := map[string]func() int{
		"nodes": func() int { nodes, _ := c.Counts(); return nodes },
		"pods":  func() int { _, pods := c.Counts(); return pods },
	}
	collectors := []prometheus.Collector{m.failures}
	for kind, count := range objects {
		labels := prometheus.Labels{"kind": kind}
		last := m.last[kind]
		collectors = append(collectors, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: namespace, Name: "cache_objects", Help: "Nodes, and pods on them, that the cache holds.",
			ConstLabels: labels,
		}, func() float64 { return float64(count()) }), prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: namespace, Name: "cache_last_change_timestamp_seconds",
			Help: "Time of the last change that the API server reported, by kind; 0 if none.", ConstLabels: labels,
		}, func() float64 { return float64(last.Load()) / float64(time.Second) }))
	}
	return m, register(registry, collectors...)
}

// changed records a change that the API server reported.
func (m *cacheMetrics) changed(kind string) { m.last[kind].Store(time.Now().UnixNano()) }
