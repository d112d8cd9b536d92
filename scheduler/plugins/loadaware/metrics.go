package loadaware

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// metrics are shared by all profiles: counters of the same metric are summed, gauges show the last
// value.
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
	all := scheduler.NewMetrics(r, "pmk_sched_loadaware_")
	m := &metrics{
		queries: all.Counter("queries_total", "Queries to Prometheus, by metric and result.", "metric", "result"),
		discarded: all.Counter("samples_discarded_total", "Discarded samples, by metric and reason.",
			"metric", "reason"),
		filtered: all.Counter("nodes_filtered_total",
			"Rejected nodes, summed over all scheduling attempts, by metric and reason.", "metric", "reason"),
		up:      all.Gauge("up", "1 if the last query succeeded, by metric.", "metric"),
		success: all.Gauge("last_success_timestamp_seconds", "Time of the last successful query, by metric.", "metric"),
		nodes: all.Gauge("nodes",
			"Nodes of the cluster, by metric and whether their load is fresh or stale.", "metric", "data"),
		duration: all.Histogram("query_duration_seconds", "Duration of queries to Prometheus, by metric.",
			prometheus.ExponentialBuckets(0.001, 2, 14), "metric"),
	}
	return m, all.Err()
}
