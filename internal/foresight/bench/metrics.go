package bench

import (
	"cmp"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// histogram is a histogram in Prometheus' text format.
type histogram struct {
	sum     float64
	count   float64
	buckets map[float64]float64 // cumulative counts by upper bound
}

// mean returns the mean in the unit of the histogram, 0 of none.
func (h *histogram) mean() float64 {
	if h == nil || h.count == 0 {
		return 0
	}
	return h.sum / h.count
}

// quantile returns a quantile, interpolated within its bucket as Prometheus' histogram_quantile does.
func (h *histogram) quantile(q float64) float64 {
	if h == nil || h.count == 0 {
		return 0
	}
	rank, lower, before := q*h.count, 0.0, 0.0
	for _, bound := range slices.Sorted(maps.Keys(h.buckets)) {
		count := h.buckets[bound]
		if count < rank || count == before {
			lower, before = bound, count
			continue
		}
		if math.IsInf(bound, 1) {
			return lower
		}
		return lower + (bound-lower)*(rank-before)/(count-before)
	}
	return lower
}

func (h *histogram) add(other *histogram) {
	h.sum, h.count = h.sum+other.sum, h.count+other.count
	for bound, n := range other.buckets {
		h.buckets[bound] += n
	}
}

var (
	// metricLine matches a line of a histogram of the scheduler.
	metricLine = regexp.MustCompile(`(?m)^scheduler_(\w+)_(sum|count|bucket)(?:\{(.*)\})? (\S+)$`)
	labelPair  = regexp.MustCompile(`(\w+)="((?:[^"\\]|\\.)*)"`)
)

// parseHistograms returns the histograms of a metric by the values of some labels, joined with a
// slash. Others are added together. A series whose labels differ from where is left out.
func parseHistograms(text, metric string, where map[string]string, by ...string) map[string]*histogram {
	all := map[string]*histogram{}
	for _, found := range metricLine.FindAllStringSubmatch(text, -1) {
		value, err := strconv.ParseFloat(found[4], 64)
		if found[1] != metric || err != nil {
			continue
		}
		labels := map[string]string{}
		for _, pair := range labelPair.FindAllStringSubmatch(found[3], -1) {
			labels[pair[1]] = pair[2]
		}
		if !matches(labels, where) {
			continue
		}
		var values []string
		for _, label := range by {
			values = append(values, labels[label])
		}
		key := strings.Join(values, "/")
		if all[key] == nil {
			all[key] = &histogram{buckets: map[float64]float64{}}
		}
		switch found[2] {
		case "sum":
			all[key].sum += value
		case "count":
			all[key].count += value
		default:
			if bound, err := strconv.ParseFloat(labels["le"], 64); err == nil {
				all[key].buckets[bound] += value
			}
		}
	}
	return all
}

func matches(labels, where map[string]string) bool {
	for label, value := range where {
		if labels[label] != value {
			return false
		}
	}
	return true
}

// attemptMetrics are the metrics of scheduling attempts: the first from 1.23 on, the second up to 1.26.
func attemptMetrics() []string {
	return []string{"scheduling_attempt_duration_seconds", "e2e_scheduling_duration_seconds"}
}

// attempts returns the durations of the attempts that found a node.
func attempts(text string) *histogram {
	for _, metric := range attemptMetrics() {
		if h := parseHistograms(text, metric, map[string]string{"result": "scheduled"})[""]; h != nil && h.count > 0 {
			return h
		}
	}
	return nil
}

// PluginTime is the time that a plugin takes at an extension point.
type PluginTime struct {
	Plugin string `json:"plugin"`
	Point  string `json:"point"`
	// MicrosecondsPerCall is the mean of a call. At Filter and Score there is one call for each node.
	MicrosecondsPerCall float64 `json:"microsecondsPerCall"`
	// MillisecondsPerPod is the plugin's part of the time that the extension point takes for a pod.
	MillisecondsPerPod float64 `json:"millisecondsPerPod"`
	// Binding reports that the plugin runs in the binding cycle, while the next pods are scheduled: it does not limit how many are bound a second.
	Binding bool `json:"binding,omitempty"`
}

// bindingPoints are the extension points of the binding cycle.
func bindingPoints() []string { return []string{"PreBind", "Bind", "PostBind"} }

// plugins returns the time of each plugin, the slowest first, plugins of the binding cycle last.
// One in ten scheduling cycles measures its calls, and the scheduler keeps 1000 of these a second
// (metricRecorder in pkg/scheduler/metrics). So their sum is meaningless, and a plugin may be
// missing after few pods. The calls only show how plugins share the time of the extension point,
// which every cycle measures.
func plugins(texts []string, ofPoints []PointTime) []PluginTime {
	sums, pointSums := map[string]*histogram{}, map[string]float64{}
	for _, text := range texts {
		for key, h := range parseHistograms(text, "plugin_execution_duration_seconds", nil, "plugin", "extension_point") {
			if sums[key] == nil {
				sums[key] = &histogram{buckets: map[float64]float64{}}
			}
			sums[key].add(h)
			_, point, _ := strings.Cut(key, "/")
			pointSums[point] += h.sum
		}
	}
	perPod := map[string]float64{}
	for _, p := range ofPoints {
		perPod[p.Point] = p.MillisecondsPer
	}
	var all []PluginTime
	for key, h := range sums {
		plugin, point, _ := strings.Cut(key, "/")
		t := PluginTime{Plugin: plugin, Point: point, MicrosecondsPerCall: h.mean() * 1e6, Binding: slices.Contains(bindingPoints(), point)}
		if pointSums[point] > 0 {
			t.MillisecondsPerPod = perPod[point] * h.sum / pointSums[point]
		}
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b PluginTime) int {
		switch {
		case a.Binding && !b.Binding:
			return 1
		case b.Binding && !a.Binding:
			return -1
		}
		return cmp.Or(cmp.Compare(b.MillisecondsPerPod, a.MillisecondsPerPod), cmp.Compare(a.Plugin, b.Plugin), cmp.Compare(a.Point, b.Point))
	})
	return all
}

// PointTime is the time that an extension point takes for a pod.
type PointTime struct {
	Point           string  `json:"point"`
	MillisecondsPer float64 `json:"millisecondsPerPod"`
}

// points returns the time of each extension point, the slowest first.
func points(texts []string, pods int) []PointTime {
	sums := map[string]float64{}
	for _, text := range texts {
		for point, h := range parseHistograms(text, "framework_extension_point_duration_seconds", nil, "extension_point") {
			sums[point] += h.sum
		}
	}
	var all []PointTime
	for point, sum := range sums {
		if pods > 0 {
			all = append(all, PointTime{Point: point, MillisecondsPer: sum * 1e3 / float64(pods)})
		}
	}
	slices.SortFunc(all, func(a, b PointTime) int {
		return cmp.Or(cmp.Compare(b.MillisecondsPer, a.MillisecondsPer), cmp.Compare(a.Point, b.Point))
	})
	return all
}
