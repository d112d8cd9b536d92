package server

import (
	"errors"
	"fmt"

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
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
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
	}
	if err := errors.Join(registry.Register(m.requests), registry.Register(m.duration)); err != nil {
		return nil, fmt.Errorf("register the metrics of the admission webhooks: %w", err)
	}
	return m, nil
}
