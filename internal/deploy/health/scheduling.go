package health

import "github.com/pmk-sched/pmk-sched/internal/cluster/metrics"

// Scheduling sums up the counters of a scheduler's replicas since they started.
type Scheduling struct {
	// Scheduled, Unschedulable and Errors are attempts by result.
	Scheduled     int64 `json:"scheduled"`
	Unschedulable int64 `json:"unschedulable"`
	Errors        int64 `json:"errors"`
	// P50 and P99 are the latency in seconds for attempts that scheduled a pod. They are 0 without
	// such attempts. They are interpolated between a histogram's bounds, and never above its last one.
	P50 float64 `json:"p50Seconds"`
	P99 float64 `json:"p99Seconds"`
	// Leading is the number of replicas that report themselves as leader.
	Leading int `json:"leading"`
	// Replicas is the number of replicas whose metrics were read. Unknown is the reason why the
	// metrics of other replicas were not read.
	Replicas int    `json:"replicas"`
	Unknown  string `json:"unknown,omitempty"`
}

const (
	attemptsMetric = "scheduler_schedule_attempts_total"
	leaderMetric   = "leader_election_master_status"
)

// ReadScheduling sums up the metrics of replicas in the Prometheus text format. duration is the
// name of the histogram for scheduling attempts in their release.
func ReadScheduling(texts []string, duration string) *Scheduling {
	s := &Scheduling{Replicas: len(texts)}
	var scheduled metrics.Histogram
	for _, text := range texts {
		m := metrics.Parse(text)
		attempts := m.SumBy(attemptsMetric, "result")
		s.Scheduled += int64(attempts["scheduled"])
		s.Unschedulable += int64(attempts["unschedulable"])
		s.Errors += int64(attempts["error"])
		durations := m.Histograms(duration, "result")
		scheduled.Add(durations["scheduled"])
		scheduled.Add(durations[""])
		if m.Sum(leaderMetric) > 0 {
			s.Leading++
		}
	}
	s.P50, s.P99 = scheduled.Quantile(0.5), scheduled.Quantile(0.99)
	return s
}
