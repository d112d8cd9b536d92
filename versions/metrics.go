package versions

// Metrics are the names of kube-scheduler metrics that differ between releases
// (pkg/scheduler/metrics/metrics.go). Metrics with the same name in all releases are not listed.
// Histograms are named without their suffix.
type Metrics struct {
	// AttemptDuration is a histogram: seconds that an attempt to schedule a pod takes, with the
	// labels result and profile.
	AttemptDuration string
	// PodDuration is a histogram: seconds from the first attempt to schedule a pod until it is
	// bound, with the label attempts.
	PodDuration string
	// UnschedulablePods is a gauge: pods that a plugin rejected, with the labels plugin and profile.
	// Empty until 1.23.
	UnschedulablePods string
	// CacheSize is a gauge: elements in the scheduler's cache, with the label type
	// (kubernetes#128810).
	CacheSize string
}

// metricRows name a release's metrics. A deprecated metric is replaced by its successor as soon as
// that exists.
func metricRows() []row {
	return []row{
		{20, 23, func(r *Rules) { r.Metrics.AttemptDuration = "scheduler_e2e_scheduling_duration_seconds" }},
		{23, onward, func(r *Rules) { r.Metrics.AttemptDuration = "scheduler_scheduling_attempt_duration_seconds" }},
		{20, 29, func(r *Rules) { r.Metrics.PodDuration = "scheduler_pod_scheduling_duration_seconds" }},
		{29, onward, func(r *Rules) { r.Metrics.PodDuration = "scheduler_pod_scheduling_sli_duration_seconds" }},
		{20, 33, func(r *Rules) { r.Metrics.CacheSize = "scheduler_scheduler_cache_size" }},
		{33, onward, func(r *Rules) { r.Metrics.CacheSize = "scheduler_cache_size" }},
		{24, onward, func(r *Rules) { r.Metrics.UnschedulablePods = "scheduler_unschedulable_pods" }},
	}
}
