// Package bench measures schedulers' speed: how many pods a second each binds, how long an attempt
// takes, and which plugins take the time.
package bench

import (
	"fmt"
	"slices"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/cluster/metrics"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Sample is one measurement for one scheduler.
type Sample struct {
	// Bound are the times at which pods were bound, in any order; Pods is the number of pods to bind.
	Bound []time.Time
	Pods  int
	// Nodes is the number of nodes.
	Nodes int
	// Metrics are the scheduler's metrics after the measurement, in Prometheus' text format.
	Metrics string
}

// rate returns the pods that were bound in a second, between the first and the last.
func (s Sample) rate() float64 {
	if len(s.Bound) < 2 {
		return 0
	}
	times := s.sorted()
	seconds := times[len(times)-1].Sub(times[0]).Seconds()
	if seconds <= 0 {
		return 0
	}
	return float64(len(times)-1) / seconds
}

func (s Sample) sorted() []time.Time {
	return slices.SortedFunc(slices.Values(s.Bound), time.Time.Compare)
}

// perSecond returns how many pods were bound in each full second since the first.
func (s Sample) perSecond() []float64 {
	times := s.sorted()
	if len(times) == 0 {
		return nil
	}
	counts := make([]float64, int(times[len(times)-1].Sub(times[0])/time.Second)+1)
	for _, t := range times {
		counts[int(t.Sub(times[0])/time.Second)]++
	}
	if len(counts) > 1 {
		counts = counts[:len(counts)-1] // the last second is not full
	}
	return counts
}

// Side is a scheduler with its samples.
type Side struct {
	// Source is the scheduler's source, for example a file or default.
	Source    string `json:"source"`
	Scheduler string `json:"scheduler"`
	Release   string `json:"release"`
	// Rates are the pods per second in each sample, Rate is their median.
	Rates []float64 `json:"rates"`
	Rate  float64   `json:"rate"`
	// Unbound is the number of pods that got no node, in all samples.
	Unbound int `json:"unbound"`
	// Attempt is the scheduling attempts' latency.
	Attempt Latency `json:"attempt"`
	// Plugins and Points are the times for plugins and extension points, the slowest first.
	Plugins []PluginTime `json:"plugins"`
	Points  []PointTime  `json:"points"`
	// Ratio is the measured scheduler's rate divided by Rate, for a scheduler that it is compared
	// with. It is 0 if one of them has no rate.
	Ratio float64 `json:"ratio,omitempty"`

	samples []Sample
}

// Latency are quantiles in milliseconds.
type Latency struct {
	Average float64 `json:"average"`
	P50     float64 `json:"p50"`
	P90     float64 `json:"p90"`
	P95     float64 `json:"p95"`
	P99     float64 `json:"p99"`
}

// Result compares a scheduler with others.
type Result struct {
	// Version and DataItems are perfdash's format (kubernetes/perf-tests); it ignores the rest.
	Version   string     `json:"version"`
	DataItems []DataItem `json:"dataItems"`

	Workload string `json:"workload"`
	Nodes    int    `json:"nodes"`
	Pods     int    `json:"pods"`
	Samples  int    `json:"samples"`
	// This is the measured scheduler. Against are the schedulers that it is compared with.
	This    Side     `json:"this"`
	Against []Side   `json:"against"`
	Notes   []string `json:"notes,omitempty"`
}

// DataItem is a measurement in perfdash's format.
type DataItem struct {
	Data   map[string]float64 `json:"data"`
	Unit   string             `json:"unit"`
	Labels map[string]string  `json:"labels"`
}

// newSide evaluates a scheduler's samples.
func newSide(source, scheduler, release string, samples []Sample) Side {
	s := Side{Source: source, Scheduler: scheduler, Release: release, Rates: []float64{}, samples: samples}
	parsed, _ := versions.FromServer(release)
	var scheduled metrics.Histogram // attempts that found a node
	var all []metrics.Set
	bound := 0
	for _, sample := range samples {
		s.Rates = append(s.Rates, sample.rate())
		s.Unbound += sample.Pods - len(sample.Bound)
		bound += len(sample.Bound)
		m := metrics.Parse(sample.Metrics)
		scheduled.Add(m.Histograms(parsed.Rules().Metrics.AttemptDuration, "result")["scheduled"])
		all = append(all, m)
	}
	s.Rate = Median(s.Rates)
	s.Attempt = Latency{
		Average: scheduled.Mean() * 1e3,
		P50:     scheduled.Quantile(0.5) * 1e3, P90: scheduled.Quantile(0.9) * 1e3,
		P95: scheduled.Quantile(0.95) * 1e3, P99: scheduled.Quantile(0.99) * 1e3,
	}
	s.Points = points(all, bound)
	s.Plugins = plugins(all, s.Points)
	return s
}

// Median returns the median of numbers, 0 if there are none.
func Median(numbers []float64) float64 {
	if len(numbers) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(numbers))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}

// newResult compares a scheduler with others, which have the same workload.
func newResult(workload string, this Side, against ...Side) *Result {
	r := &Result{Version: "v1", Workload: workload, Samples: len(this.samples), This: this, Against: against}
	if len(this.samples) > 0 {
		r.Nodes, r.Pods = this.samples[0].Nodes, this.samples[0].Pods
	}
	for i, s := range against {
		if s.Rate > 0 {
			r.Against[i].Ratio = this.Rate / s.Rate
		}
	}
	for _, s := range r.Sides() {
		if s.Unbound > 0 {
			r.Notes = append(r.Notes,
				fmt.Sprintf("%s did not bind %s; the rate counts the bound pods", s.Source,
					plural.Phrase(s.Unbound, "pod: no node has room for it", "pods: no node has room for them")))
		}
		r.DataItems = append(r.DataItems, s.items(workload)...)
	}
	return r
}

// Sides returns all schedulers, the measured one first.
func (r *Result) Sides() []Side { return append([]Side{r.This}, r.Against...) }

// items returns a scheduler's measurements, with the names that scheduler_perf gives them
// (test/integration/scheduler_perf/util.go).
func (s Side) items(workload string) []DataItem {
	labels := func(metric string, more ...string) map[string]string {
		l := map[string]string{"Name": workload, "Metric": metric, "side": s.Source, "scheduler": s.Scheduler,
			"release": s.Release}
		for i := 0; i+1 < len(more); i += 2 {
			l[more[i]] = more[i+1]
		}
		return l
	}
	var seconds []float64
	for _, sample := range s.samples {
		seconds = append(seconds, sample.perSecond()...)
	}
	slices.Sort(seconds)
	all := []DataItem{
		{
			Data: map[string]float64{
				"Average": s.Rate, "Perc50": percentile(seconds, 0.5), "Perc90": percentile(seconds,
					0.9), "Perc95": percentile(seconds, 0.95), "Perc99": percentile(seconds, 0.99),
			},
			Unit: "pods/s", Labels: labels("SchedulingThroughput"),
		},
		{
			Data: map[string]float64{
				"Average": s.Attempt.Average, "Perc50": s.Attempt.P50, "Perc90": s.Attempt.P90, "Perc95": s.Attempt.P95,
				"Perc99": s.Attempt.P99,
			},
			Unit: "ms", Labels: labels("scheduler_scheduling_attempt_duration_seconds", "result", "scheduled"),
		},
	}
	for _, p := range s.Plugins {
		all = append(all, DataItem{
			Data: map[string]float64{"Average": p.MicrosecondsPerCall / 1e3},
			Unit: "ms", Labels: labels("scheduler_plugin_execution_duration_seconds", "plugin", p.Plugin, "extension_point",
				p.Point),
		})
	}
	return all
}

// percentile returns an element of sorted numbers.
func percentile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}
