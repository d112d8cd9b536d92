package elasticquota

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// newMetrics returns the eviction counter. Quota amounts and usage are collected on request.
func newMetrics(r prometheus.Registerer, q *quotas, u *usage) (*prometheus.CounterVec, error) {
	all := scheduler.NewMetrics(r, "pmk_sched_elasticquota_")
	evictions := all.Counter("evictions_total", "Pods that the ElasticQuota plugin evicted, by reason.", "reason")
	if all.Err() != nil {
		return nil, all.Err()
	}
	_, err := scheduler.Register(r, &collector{quotas: q, usage: u, amount: prometheus.NewDesc(
		"pmk_sched_elasticquota_amount",
		"What a quota of the ElasticQuota plugin has (min, max) and uses (used) of a resource. CPU is in cores.",
		[]string{"quota", "resource", "kind"}, nil)})
	return evictions, err
}

type collector struct {
	quotas *quotas
	usage  *usage
	amount *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(into chan<- *prometheus.Desc) { into <- c.amount }

// Collect implements prometheus.Collector.
func (c *collector) Collect(into chan<- prometheus.Metric) {
	for _, q := range c.quotas.all() {
		used := c.usage.used(q, nil)
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
				into <- prometheus.MustNewConstMetric(
					c.amount, prometheus.GaugeValue, value, q.name, string(resource), kind)
			}
		}
	}
}
