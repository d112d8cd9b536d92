// Package upstream runs Kubernetes' own benchmark scheduler_perf with schedulers that have plugins.
package upstream

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/foresight/bench"
)

// Throughput is the metric with the pods per second, and average the part of its data that counts.
const (
	Throughput = "SchedulingThroughput"
	average    = "Average"
)

// Result is the result of scheduler_perf for schedulers of one release.
type Result struct {
	// Version and DataItems are perfdash's format, as in [bench.Result]: upstream's own items with two
	// more labels, side and release.
	Version   string           `json:"version"`
	DataItems []bench.DataItem `json:"dataItems"`

	Release string `json:"release"`
	// Labels are the filter that selected the workloads.
	Labels    string     `json:"labels"`
	Samples   int        `json:"samples"`
	Workloads []Workload `json:"workloads"`
	Notes     []string   `json:"notes,omitempty"`
}

// Workload is a workload with its results.
type Workload struct {
	// Name is CASE/WORKLOAD. Topic is empty before 1.32.
	Name  string `json:"name"`
	Topic string `json:"topic,omitempty"`
	// Threshold is nil if upstream has none.
	Threshold *Threshold `json:"threshold,omitempty"`
	// This is the measured scheduler. Against are the schedulers that it is compared with.
	This    Side   `json:"this"`
	Against []Side `json:"against"`
}

// Threshold is upstream's limit for one metric.
type Threshold struct {
	Metric string            `json:"metric"`
	Labels map[string]string `json:"labels,omitempty"`
	// Bucket is the part of the metric, such as Average or Perc99.
	Bucket string  `json:"bucket"`
	Value  float64 `json:"value"`
	// Most is set if Value is the upper limit. Otherwise it is the lower limit.
	Most bool `json:"most,omitempty"`
}

// newThreshold returns a limit for the metric that the first selector selects, by default the pods
// per second.
func newThreshold(value float64, selectors ...*metricSelector) Threshold {
	t := Threshold{Metric: Throughput, Bucket: average, Value: value}
	for _, s := range selectors {
		if s != nil {
			t.Metric, t.Labels, t.Most = s.Name, s.Labels, s.ExpectLower
			t.Bucket = cmp.Or(s.DataBucket, average)
			break
		}
	}
	return t
}

// isMet reports whether a value is within the limit.
func (t Threshold) isMet(value float64) bool {
	if t.Most {
		return value < t.Value
	}
	return value > t.Value
}

// worst returns the selected value in data items that is nearest to missing the limit, or farthest
// beyond it.
func (t Threshold) worst(items []bench.DataItem) (worst float64, found bool) {
	for _, item := range items {
		value, has := item.Data[t.Bucket]
		if !has || item.Labels["Metric"] != t.Metric || !hasLabels(item.Labels, t.Labels) {
			continue
		}
		if !found || (value > worst) == t.Most {
			worst, found = value, true
		}
	}
	return worst, found
}

func hasLabels(labels, wanted map[string]string) bool {
	for name, value := range wanted {
		if labels[name] != value {
			return false
		}
	}
	return true
}

// The outcomes of a workload.
const (
	// Passed means that upstream's threshold is met, or that there is none.
	Passed = "passed"
	// Missed means that the median of the samples misses the threshold.
	Missed = "missed"
	// Failed means that the workload did not end as upstream expects.
	Failed = "failed"
)

// Side is a scheduler with its samples of one workload.
type Side struct {
	Source string `json:"source"`
	// Rates are the average pods per second in each sample, the lowest if a workload measures several
	// times. Rate is their median. The harness measures no rate in less than a second.
	Rates []float64 `json:"rates"`
	Rate  float64   `json:"rate"`
	// Measured is the median of the metric that the threshold is about.
	Measured float64 `json:"measured,omitempty"`
	// Result is Passed, Missed or Failed, with its Reason.
	Result string `json:"result"`
	Reason string `json:"reason,omitempty"`
	// Ratio is the measured scheduler's rate divided by Rate. It is 0 if one of them has no rate.
	Ratio float64 `json:"ratio,omitempty"`
}

// outcome is one run of a workload.
type outcome struct {
	items []bench.DataItem
	// failure is the reason for which the run failed, other than a threshold.
	failure string
}

// evaluate evaluates the samples of a workload.
func evaluate(source string, threshold Threshold, samples []outcome) Side {
	s := Side{Source: source, Rates: []float64{}, Result: Passed}
	rate := newThreshold(0)
	var measured []float64
	for _, sample := range samples {
		if value, found := rate.worst(sample.items); found {
			s.Rates = append(s.Rates, value)
		}
		if value, found := threshold.worst(sample.items); found {
			measured = append(measured, value)
		}
		if sample.failure != "" && s.Result != Failed {
			s.Result, s.Reason = Failed, sample.failure
		}
	}
	s.Rate = bench.Median(s.Rates)
	if threshold.Value == 0 || s.Result == Failed {
		return s
	}
	if len(measured) == 0 {
		s.Result, s.Reason = Failed, "the harness has not measured "+threshold.Metric
		return s
	}
	if s.Measured = bench.Median(measured); !threshold.isMet(s.Measured) {
		s.Result = Missed
		s.Reason = fmt.Sprintf("%s %s is %.4g", threshold.Metric, threshold.Bucket, s.Measured)
	}
	return s
}

// compare sets the ratio of each scheduler in Against.
func (w *Workload) compare() {
	for i, s := range w.Against {
		if s.Rate > 0 && w.This.Rate > 0 {
			w.Against[i].Ratio = w.This.Rate / s.Rate
		}
	}
}

// Misses describes the workloads that the scheduler fails, or whose threshold it misses, while
// another scheduler passes, and those with less than least times the rate of another scheduler.
func (r *Result) Misses(least float64) (misses []string) {
	for _, w := range r.Workloads {
		passes := func(s Side) bool { return s.Result == Passed }
		switch i := slices.IndexFunc(w.Against, passes); {
		case w.This.Result != Passed && i >= 0:
			misses = append(misses, fmt.Sprintf("%s: %s (%s), while %s passes", w.Name, w.This.Result, w.This.Reason,
				w.Against[i].Source))
			continue
		case w.This.Result == Failed:
			continue
		}
		for _, s := range w.Against {
			if s.Ratio > 0 && s.Ratio < least {
				misses = append(misses, fmt.Sprintf("%s: %.2f times the pods per second of %s, less than %v", w.Name, s.Ratio,
					s.Source, least))
			}
		}
	}
	return misses
}

// note adds a note about the workloads that have no rate.
func (r *Result) note() {
	short := 0
	for _, w := range r.Workloads {
		if w.This.Rate == 0 && w.This.Result == Passed {
			short++
		}
	}
	if short > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d of %d workloads have no rate: the pods are scheduled in less than a second",
			short, len(r.Workloads)))
	}
}

// parseDataItems reads a file that the harness writes. side and release become labels.
func parseDataItems(text []byte, side, release string) ([]bench.DataItem, error) {
	var file struct {
		DataItems []bench.DataItem `json:"dataItems"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("read data items: %w", err)
	}
	for i, item := range file.DataItems {
		labels := maps.Clone(item.Labels)
		if labels == nil {
			labels = map[string]string{}
		}
		labels["side"], labels["release"] = side, release
		file.DataItems[i].Labels = labels
	}
	return file.DataItems, nil
}

var (
	// messageLine matches a message of package testing, which is indented: a failure or a line of the
	// log, which look the same. Failures that upstream's package ktesting logs begin with a line of
	// their own (test/utils/ktesting/errorcontext.go).
	messageLine = regexp.MustCompile(`(?m)^ +[\w.-]+\.go:\d+: ((?:FATAL )?ERROR:\s+)?(.+)$`)
	// thresholdLine matches upstream's message about a threshold.
	thresholdLine = regexp.MustCompile(`expected .+ to be (higher|lower): got `)
	// logLine matches a line of the log of a component, which is no failure at any level but fatal.
	logLine = regexp.MustCompile(`^[IWE]\d{4} [\d:.]+\] `)
	// failureLine matches messages about a failure.
	failureLine = regexp.MustCompile(`(?i)^op \d+: |error|fail|expected|unable|cannot|invalid|timed out|missing|` +
		`\b(not|should)\b`)
	panicLine = regexp.MustCompile(`(?m)^(panic: .+|fatal error: .+)$`)
)

// failureOf returns the reason for which a run of the harness failed, from its output. It is empty
// if only a threshold is missed.
func failureOf(output string) string {
	missed, last := false, ""
	for _, match := range messageLine.FindAllStringSubmatch(output, -1) {
		switch line := strings.TrimSpace(match[2]); {
		case thresholdLine.MatchString(line):
			missed = true
		case match[1] != "", failureLine.MatchString(line) && !logLine.MatchString(line):
			return line
		case line != "full log output:":
			last = line
		}
	}
	if match := panicLine.FindString(output); match != "" {
		return match
	}
	if missed {
		return ""
	}
	return cmp.Or(last, "the harness failed: "+lastLine(output))
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
