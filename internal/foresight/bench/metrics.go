package bench

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/cluster/metrics"
)

// PluginTime is the time that a plugin takes at an extension point.
type PluginTime struct {
	Plugin string `json:"plugin"`
	Point  string `json:"point"`
	// MicrosecondsPerCall is the mean per call. At Filter and Score there is one call for each node.
	MicrosecondsPerCall float64 `json:"microsecondsPerCall"`
	// MillisecondsPerPod is the plugin's part of the time that the extension point takes for a pod.
	MillisecondsPerPod float64 `json:"millisecondsPerPod"`
	// Binding reports that the plugin runs in the binding cycle, while the next pods are scheduled: it
	// does not limit how many are bound a second.
	Binding bool `json:"binding,omitempty"`
}

// bindingPoints are the extension points in the binding cycle.
func bindingPoints() []string { return []string{"PreBind", "Bind", "PostBind"} }

// plugins returns each plugin's time, the slowest first, binding-cycle plugins last. One in ten
// scheduling cycles measures its calls, and the scheduler keeps 1000 of these a second
// (metricRecorder in pkg/scheduler/metrics). So their sum is meaningless, and a plugin may be
// missing after few pods. The calls only show how plugins share the extension point's time, which
// every cycle measures.
func plugins(samples []metrics.Set, ofPoints []PointTime) []PluginTime {
	sums, pointSums := map[string]*metrics.Histogram{}, map[string]float64{}
	for _, m := range samples {
		for key, h := range m.Histograms("scheduler_plugin_execution_duration_seconds", "plugin", "extension_point") {
			if sums[key] == nil {
				sums[key] = &metrics.Histogram{}
			}
			sums[key].Add(h)
			_, point, _ := strings.Cut(key, "/")
			pointSums[point] += h.Sum
		}
	}
	perPod := map[string]float64{}
	for _, p := range ofPoints {
		perPod[p.Point] = p.MillisecondsPer
	}
	var all []PluginTime
	for key, h := range sums {
		plugin, point, _ := strings.Cut(key, "/")
		t := PluginTime{Plugin: plugin, Point: point, MicrosecondsPerCall: h.Mean() * 1e6,
			Binding: slices.Contains(bindingPoints(), point)}
		if pointSums[point] > 0 {
			t.MillisecondsPerPod = perPod[point] * h.Sum / pointSums[point]
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
		return cmp.Or(cmp.Compare(b.MillisecondsPerPod, a.MillisecondsPerPod), cmp.Compare(a.Plugin, b.Plugin),
			cmp.Compare(a.Point, b.Point))
	})
	return all
}

// PointTime is the time that an extension point takes for a pod.
type PointTime struct {
	Point           string  `json:"point"`
	MillisecondsPer float64 `json:"millisecondsPerPod"`
}

// points returns each extension point's time, the slowest first.
func points(samples []metrics.Set, pods int) []PointTime {
	sums := map[string]float64{}
	for _, m := range samples {
		for point, h := range m.Histograms("scheduler_framework_extension_point_duration_seconds", "extension_point") {
			sums[point] += h.Sum
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
