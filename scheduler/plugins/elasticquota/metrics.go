package elasticquota

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// metrics counts evictions. The amounts of quotas and their usage are collected on request.
type metrics struct{ evictions *prometheus.CounterVec }

func newMetrics(r prometheus.Registerer, q *quotas, l *ledger) (*metrics, error) {
	collector, err := scheduler.Register(r, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "pmk_sched_elasticquota_evictions_total",
		Help: "Pods that the ElasticQuota plugin evicted, by reason.",
	}, []string{"reason"}))
	if err != nil {
		return nil, err
	}
	evictions, ok := collector.(*prometheus.CounterVec)
	if !ok {
		return nil, fmt.Errorf("a metric of another type has this name")
	}
	_, err = scheduler.Register(r, &usage{quotas: q, ledger: l, amount: prometheus.NewDesc("pmk_sched_elasticquota_amount",
		"What a quota of the ElasticQuota plugin has (min, max) and uses (used) of a resource. CPU is in cores.", []string{"quota", "resource", "kind"}, nil)})
	return &metrics{evictions: evictions}, err
}

func (m *metrics) evicted(reason string) {
	if m != nil {
		m.evictions.WithLabelValues(reason).Inc()
	}
}

// usage collects the amounts of quotas and their usage.
type usage struct {
	quotas *quotas
	ledger *ledger
	amount *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (u *usage) Describe(into chan<- *prometheus.Desc) { into <- u.amount }

// Collect implements prometheus.Collector.
func (u *usage) Collect(into chan<- prometheus.Metric) {
	for _, q := range u.quotas.all() {
		used := u.ledger.used(q, nil)
		for resource := range q.min {
			for kind, amounts := range map[string]amounts{"min": q.min, "max": q.max, "used": used} {
				amount, has := amounts[resource]
				if !has && kind == "max" {
					continue
				}
				value := float64(amount)
				if resource == "cpu" {
					value /= 1000
				}
				into <- prometheus.MustNewConstMetric(u.amount, prometheus.GaugeValue, value, q.name, string(resource), kind)
			}
		}
	}
}
