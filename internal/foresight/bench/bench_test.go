package bench

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const text = `# HELP scheduler_plugin_execution_duration_seconds [ALPHA] Duration for running a plugin at a specific extension point.
# TYPE scheduler_plugin_execution_duration_seconds histogram
scheduler_plugin_execution_duration_seconds_bucket{extension_point="Filter",plugin="Sleepy",status="Success",le="0.01"} 40
scheduler_plugin_execution_duration_seconds_bucket{extension_point="Filter",plugin="Sleepy",status="Success",le="+Inf"} 40
scheduler_plugin_execution_duration_seconds_sum{extension_point="Filter",plugin="Sleepy",status="Success"} 0.2
scheduler_plugin_execution_duration_seconds_count{extension_point="Filter",plugin="Sleepy",status="Success"} 40
scheduler_plugin_execution_duration_seconds_sum{extension_point="Filter",plugin="Fit",status="Success"} 0.001
scheduler_plugin_execution_duration_seconds_count{extension_point="Filter",plugin="Fit",status="Success"} 30
scheduler_plugin_execution_duration_seconds_sum{extension_point="Filter",plugin="Fit",status="Unschedulable"} 0.001
scheduler_plugin_execution_duration_seconds_count{extension_point="Filter",plugin="Fit",status="Unschedulable"} 10
scheduler_plugin_execution_duration_seconds_sum{extension_point="Bind",plugin="DefaultBinder",status="Success"} 4
scheduler_plugin_execution_duration_seconds_count{extension_point="Bind",plugin="DefaultBinder",status="Success"} 4
# TYPE scheduler_framework_extension_point_duration_seconds histogram
scheduler_framework_extension_point_duration_seconds_sum{extension_point="Filter",profile="default-scheduler",status="Success"} 0.5
scheduler_framework_extension_point_duration_seconds_sum{extension_point="Score",profile="default-scheduler",status="Success"} 0.1
scheduler_framework_extension_point_duration_seconds_sum{extension_point="Bind",profile="default-scheduler",status="Success"} 4
`

const attemptsNew = `# TYPE scheduler_scheduling_attempt_duration_seconds histogram
scheduler_scheduling_attempt_duration_seconds_bucket{profile="default-scheduler",result="scheduled",le="0.001"} 50
scheduler_scheduling_attempt_duration_seconds_bucket{profile="default-scheduler",result="scheduled",le="0.002"} 90
scheduler_scheduling_attempt_duration_seconds_bucket{profile="default-scheduler",result="scheduled",le="0.004"} 100
scheduler_scheduling_attempt_duration_seconds_bucket{profile="default-scheduler",result="scheduled",le="+Inf"} 100
scheduler_scheduling_attempt_duration_seconds_sum{profile="default-scheduler",result="scheduled"} 0.12
scheduler_scheduling_attempt_duration_seconds_count{profile="default-scheduler",result="scheduled"} 100
scheduler_scheduling_attempt_duration_seconds_sum{profile="default-scheduler",result="unschedulable"} 9
scheduler_scheduling_attempt_duration_seconds_count{profile="default-scheduler",result="unschedulable"} 9
`

// attemptsOld are the metrics of attempts in 1.20 to 1.22.
const attemptsOld = `# TYPE scheduler_e2e_scheduling_duration_seconds histogram
scheduler_e2e_scheduling_duration_seconds_bucket{profile="default-scheduler",result="scheduled",le="0.001"} 50
scheduler_e2e_scheduling_duration_seconds_bucket{profile="default-scheduler",result="scheduled",le="0.002"} 90
scheduler_e2e_scheduling_duration_seconds_bucket{profile="default-scheduler",result="scheduled",le="0.004"} 100
scheduler_e2e_scheduling_duration_seconds_bucket{profile="default-scheduler",result="scheduled",le="+Inf"} 100
scheduler_e2e_scheduling_duration_seconds_sum{profile="default-scheduler",result="scheduled"} 0.12
scheduler_e2e_scheduling_duration_seconds_count{profile="default-scheduler",result="scheduled"} 100
`

// sample returns a sample with one pod bound at each of some milliseconds.
func sample(metrics string, pods int, milliseconds ...int) Sample {
	s := Sample{Pods: pods, Nodes: 5, Metrics: metrics}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, ms := range milliseconds {
		s.Bound = append(s.Bound, start.Add(time.Duration(ms)*time.Millisecond))
	}
	return s
}

func TestSideHasMediansAndWhatIsSlow(t *testing.T) {
	want := Side{
		Source: "this", Scheduler: "packer", Rates: []float64{4, 2, 1}, Rate: 2, Unbound: 1,
		Attempt: Latency{Average: 1.2, P50: 1, P90: 2, P95: 3, P99: 3.8},
		Plugins: []PluginTime{
			{Plugin: "Sleepy", Point: "Filter", MicrosecondsPerCall: 5000, MillisecondsPerPod: 3 * 500 / 11.0 * 0.2 / 0.202},
			{Plugin: "Fit", Point: "Filter", MicrosecondsPerCall: 50, MillisecondsPerPod: 3 * 500 / 11.0 * 0.002 / 0.202},
			{Plugin: "DefaultBinder", Point: "Bind", MicrosecondsPerCall: 1e6, MillisecondsPerPod: 3 * 4000 / 11.0,
				Binding: true},
		},
		Points: []PointTime{{Point: "Bind", MillisecondsPer: 3 * 4000 / 11.0},
			{Point: "Filter", MillisecondsPer: 3 * 500 / 11.0}, {Point: "Score", MillisecondsPer: 3 * 100 / 11.0}},
	}
	for release, attempts := range map[string]string{"v1.20.15": attemptsOld, "v1.23.17": attemptsOld + attemptsNew,
		"v1.37.1": attemptsNew} {
		want.Release = release
		got := newSide("this", "packer", release, []Sample{
			sample(text+attempts, 5, 750, 0, 250, 500, 1000), sample(text+attempts, 4, 0, 500, 1000), sample(text+attempts, 3, 0,
				1000, 2000),
		})
		if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9), cmpopts.IgnoreUnexported(Side{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", release, diff)
		}
	}
}

func TestResultComparesAndHasDataItems(t *testing.T) {
	own := []Sample{sample(text+attemptsNew, 3, 0, 500, 1000)}
	// 1, 2 and 3 pods in each full second, and one in the last.
	others := []Sample{sample(attemptsNew, 7, 0, 1000, 1999, 2000, 2500, 2999, 3000), sample("", 2, 0, 1500)}
	got := newResult("Alike/5Nodes/3Pods", newSide("this", "packer", "v1.24.3", own),
		newSide("default", "default-scheduler", "v1.24.3", others), newSide("b.yaml", "b", "v1.24.3", own))
	item := func(side, scheduler, metric, unit string, data map[string]float64, more ...string) DataItem {
		labels := map[string]string{"Name": "Alike/5Nodes/3Pods", "Metric": metric, "side": side, "scheduler": scheduler,
			"release": "v1.24.3"}
		for i := 0; i < len(more); i += 2 {
			labels[more[i]] = more[i+1]
		}
		return DataItem{Unit: unit, Labels: labels, Data: data}
	}
	attempts := map[string]float64{"Average": 1.2, "Perc50": 1, "Perc90": 2, "Perc95": 3, "Perc99": 3.8}
	side := func(source, scheduler string, rates map[string]float64) []DataItem {
		return []DataItem{
			item(source, scheduler, "SchedulingThroughput", "pods/s", rates),
			item(source, scheduler, "scheduler_scheduling_attempt_duration_seconds", "ms", attempts, "result", "scheduled"),
		}
	}
	plugins := func(source, scheduler string) (all []DataItem) {
		for _, p := range []struct {
			plugin, point string
			average       float64
		}{{"Sleepy", "Filter", 5}, {"Fit", "Filter", 0.05}, {"DefaultBinder", "Bind", 1000}} {
			all = append(all, item(source, scheduler, "scheduler_plugin_execution_duration_seconds", "ms",
				map[string]float64{"Average": p.average}, "plugin", p.plugin, "extension_point", p.point))
		}
		return all
	}
	same := map[string]float64{"Average": 2, "Perc50": 2, "Perc90": 2, "Perc95": 2, "Perc99": 2}
	want := slices.Concat(side("this", "packer", same), plugins("this", "packer"),
		side("default", "default-scheduler", map[string]float64{"Average": (2 + 1/1.5) / 2, "Perc50": 2, "Perc90": 3,
			"Perc95": 3, "Perc99": 3}),
		side("b.yaml", "b", same), plugins("b.yaml", "b"))
	if diff := cmp.Diff(want, got.DataItems, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("data items (-want +got):\n%s", diff)
	}
	if ratio := 2 / ((2 + 1/1.5) / 2); math.Abs(got.Against[0].Ratio-ratio) > 1e-9 || got.Against[1].Ratio != 1 {
		t.Errorf("ratios %g and %g", got.Against[0].Ratio, got.Against[1].Ratio)
	}
	got.DataItems, got.This, got.Against = nil, Side{}, nil
	if diff := cmp.Diff(&Result{Version: "v1", Workload: "Alike/5Nodes/3Pods", Nodes: 5, Pods: 3, Samples: 1}, got,
		cmpopts.IgnoreUnexported(Side{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPodsThatWereNotBoundAreNoted(t *testing.T) {
	r := newResult("x", newSide("this", "", "", []Sample{{Pods: 2}}), newSide("default", "", "", nil),
		newSide("b.yaml", "", "", []Sample{sample("", 3, 0, 500), sample("", 3, 0, 500)}))
	note := func(source string, pods int) string {
		return fmt.Sprintf("%s did not bind %d pods: no node has room for them; the rate counts the bound pods", source, pods)
	}
	if diff := cmp.Diff([]string{note("this", 2), note("b.yaml", 2)}, r.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	if r.Against[0].Ratio != 0 || r.Against[1].Ratio != 0 || r.Nodes != 0 || r.Pods != 2 {
		t.Errorf("%+v", r)
	}
	if none := newResult("x", newSide("this", "", "", nil)); none.Samples != 0 || none.Nodes != 0 || none.Pods != 0 {
		t.Errorf("without samples: %+v", none)
	}
}

func TestRatesOfSamples(t *testing.T) {
	for name, tc := range map[string]struct {
		bound     []int
		rate      float64
		perSecond []float64
	}{
		"none":                     {nil, 0, nil},
		"one":                      {[]int{500}, 0, []float64{1}},
		"two at once":              {[]int{0, 0}, 0, []float64{2}},
		"less than a second":       {[]int{400, 0, 200}, 5, []float64{3}},
		"a second, and the next":   {[]int{1000, 0, 999}, 2, []float64{2}},
		"seconds without a pod":    {[]int{3500, 0, 100}, 2 / 3.5, []float64{2, 0, 0}},
		"from the first pod on":    {[]int{700, 1600, 1700, 3700}, 1, []float64{2, 1, 0}},
		"the last one is not full": {[]int{0, 1000, 2000, 2999}, 3 / 2.999, []float64{1, 1}},
	} {
		s := sample("", len(tc.bound), tc.bound...)
		if got := s.rate(); math.Abs(got-tc.rate) > 1e-9 {
			t.Errorf("%s: %g pods a second, want %g", name, got, tc.rate)
		}
		if diff := cmp.Diff(tc.perSecond, s.perSecond()); diff != "" {
			t.Errorf("%s: in each second (-want +got):\n%s", name, diff)
		}
	}
}

func TestMediansAndPercentiles(t *testing.T) {
	ten := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for _, tc := range []struct {
		numbers     []float64
		median      float64
		percentiles [4]float64 // 0.5, 0.9, 0.95, 1
	}{
		{nil, 0, [4]float64{}},
		{[]float64{3}, 3, [4]float64{3, 3, 3, 3}},
		{[]float64{1, 4}, 2.5, [4]float64{4, 4, 4, 4}},
		{[]float64{1, 2, 9}, 2, [4]float64{2, 9, 9, 9}},
		{ten, 5.5, [4]float64{6, 10, 10, 10}},
	} {
		backward := slices.Clone(tc.numbers)
		slices.Reverse(backward)
		if got := Median(backward); got != tc.median {
			t.Errorf("%v: median %g, want %g", tc.numbers, got, tc.median)
		}
		for i, q := range []float64{0.5, 0.9, 0.95, 1} {
			if got := percentile(tc.numbers, q); got != tc.percentiles[i] {
				t.Errorf("%v: percentile %g is %g, want %g", tc.numbers, q, got, tc.percentiles[i])
			}
		}
	}
}

// Equal times are ordered by name, plugins of the binding cycle come last, and a plugin of a point
// that took no time has no part of it.
func TestPluginsAndPointsAreOrdered(t *testing.T) {
	const sums = `# TYPE scheduler_plugin_execution_duration_seconds histogram
scheduler_plugin_execution_duration_seconds_sum{extension_point="PreBind",plugin="V",status="Success"} 8
scheduler_plugin_execution_duration_seconds_count{extension_point="PreBind",plugin="V",status="Success"} 1
scheduler_plugin_execution_duration_seconds_sum{extension_point="PostBind",plugin="U",status="Success"} 9
scheduler_plugin_execution_duration_seconds_count{extension_point="PostBind",plugin="U",status="Success"} 1
scheduler_plugin_execution_duration_seconds_sum{extension_point="Score",plugin="B",status="Success"} 1
scheduler_plugin_execution_duration_seconds_count{extension_point="Score",plugin="B",status="Success"} 2
scheduler_plugin_execution_duration_seconds_sum{extension_point="Score",plugin="A",status="Success"} 1
scheduler_plugin_execution_duration_seconds_count{extension_point="Score",plugin="A",status="Success"} 4
scheduler_plugin_execution_duration_seconds_sum{extension_point="Filter",plugin="A",status="Success"} 2
scheduler_plugin_execution_duration_seconds_count{extension_point="Filter",plugin="A",status="Success"} 1
scheduler_plugin_execution_duration_seconds_sum{extension_point="PreFilter",plugin="A",status="Success"} 0
scheduler_plugin_execution_duration_seconds_count{extension_point="PreFilter",plugin="A",status="Success"} 1
# TYPE scheduler_framework_extension_point_duration_seconds histogram
scheduler_framework_extension_point_duration_seconds_sum{extension_point="Score",profile="p",status="Success"} 0.2
scheduler_framework_extension_point_duration_seconds_sum{extension_point="Filter",profile="p",status="Success"} 0.1
scheduler_framework_extension_point_duration_seconds_sum{extension_point="PreFilter",profile="p",status="Success"} 0.1
scheduler_framework_extension_point_duration_seconds_sum{extension_point="PreBind",profile="p",status="Success"} 3
`
	got := newSide("", "", "v1.24.3", []Sample{sample(sums, 2, 0, 100)})
	points := []PointTime{{"PreBind", 1500}, {"Score", 100}, {"Filter", 50}, {"PreFilter", 50}}
	if diff := cmp.Diff(points, got.Points, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
	want := []PluginTime{
		{Plugin: "A", Point: "Filter", MicrosecondsPerCall: 2e6, MillisecondsPerPod: 50},
		{Plugin: "A", Point: "Score", MicrosecondsPerCall: 0.25e6, MillisecondsPerPod: 50},
		{Plugin: "B", Point: "Score", MicrosecondsPerCall: 0.5e6, MillisecondsPerPod: 50},
		{Plugin: "A", Point: "PreFilter"},
		{Plugin: "V", Point: "PreBind", MicrosecondsPerCall: 8e6, MillisecondsPerPod: 1500, Binding: true},
		{Plugin: "U", Point: "PostBind", MicrosecondsPerCall: 9e6, Binding: true},
	}
	if diff := cmp.Diff(want, got.Plugins, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("plugins (-want +got):\n%s", diff)
	}
	if none := newSide("", "", "v1.24.3", []Sample{{Pods: 1, Metrics: sums}}); len(none.Points) > 0 {
		t.Errorf("without a bound pod: %v", none.Points)
	}
}
