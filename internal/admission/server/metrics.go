package server

import (
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
)

// Results of requests in the metrics.
const (
	resultAllowed = "allowed"
	resultDenied  = "denied"
	resultError   = "error"   // the handler panicked or had no answer: allowed
	resultLate    = "late"    // the handler had no answer in time: allowed
	resultBusy    = "busy"    // too many handlers run: allowed
	resultInvalid = "invalid" // not a review; the API server ignores the failure
	resultUnknown = "unknown" // a path without the token
)

type metrics struct {
	requests    *prometheus.CounterVec
	duration    *prometheus.HistogramVec
	connections prometheus.Counter
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	const namespace = "pmk_sched_admission"
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "requests_total", Help: "Requests by webhook and result.",
		}, []string{"webhook", "result"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Name: "request_duration_seconds",
			Help:    "Time from a review's first byte to its answer, by webhook.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2, 14),
		}, []string{"webhook"}),
		connections: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: namespace, Name: "connections_total",
			Help: "Connections that were opened, each with a TLS handshake.",
		}),
	}
	if err := errors.Join(registry.Register(m.requests), registry.Register(m.duration),
		registry.Register(m.connections)); err != nil {
		return nil, fmt.Errorf("register the metrics of the admission webhooks: %w", err)
	}
	return m, nil
}

// count counts new connections before next sees them.
func (m *metrics) count(next func(net.Conn, http.ConnState)) func(net.Conn, http.ConnState) {
	return func(c net.Conn, state http.ConnState) {
		if state == http.StateNew {
			m.connections.Inc()
		}
		next(c, state)
	}
}
