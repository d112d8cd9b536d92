package bench

import (
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
		got := NewSide("this", "packer", release, []Sample{
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
	others := []Sample{sample(attemptsNew, 5, 0, 250, 500, 750, 1000)}
	r := New("Alike/5Nodes/3Pods", NewSide("this", "packer", "v1.24.3", own),
		NewSide("default", "default-scheduler", "v1.24.3", others), NewSide("b.yaml", "b", "v1.24.3", own))
	if r.Against[0].Ratio != 0.5 || r.Against[1].Ratio != 1 || r.Nodes != 5 || r.Pods != 3 || r.Samples != 1 ||
		len(r.Notes) > 0 {
		t.Errorf("%+v", r)
	}
	labels := map[string]string{"Name": "Alike/5Nodes/3Pods", "Metric": "SchedulingThroughput", "side": "this",
		"scheduler": "packer", "release": "v1.24.3"}
	want := DataItem{Unit: "pods/s", Labels: labels,
		Data: map[string]float64{"Average": 2, "Perc50": 2, "Perc90": 2, "Perc95": 2, "Perc99": 2}}
	if diff := cmp.Diff(want, r.DataItems[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(r.DataItems) != 2+3+2+2+3 || r.DataItems[2].Labels["plugin"] != "Sleepy" ||
		r.DataItems[2].Data["Average"] != 5 {
		t.Errorf("data items %+v", r.DataItems)
	}
	none := New("x", NewSide("this", "", "", []Sample{{Pods: 2}}), NewSide("default", "", "", []Sample{{Pods: 2}}))
	if none.Against[0].Ratio != 0 || len(none.Notes) != 2 {
		t.Errorf("without bound pods: %+v", none)
	}
}
