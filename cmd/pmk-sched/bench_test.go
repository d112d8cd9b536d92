package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/foresight/bench"
	"github.com/pmk-sched/pmk-sched/internal/foresight/bench/upstream"
)

func TestBenchTable(t *testing.T) {
	r := &bench.Result{
		Workload: "Alike/100Pods", Nodes: 40, Pods: 100, Samples: 2,
		This: bench.Side{
			Source: "this", Scheduler: "packer", Release: "v1.24.3", Rates: []float64{20,
				30}, Rate: 25, Attempt: bench.Latency{P50: 1.5, P99: 9},
			Plugins: []bench.PluginTime{
				{Plugin: "Sleepy", Point: "Filter", MicrosecondsPerCall: 5100, MillisecondsPerPod: 204}, {Plugin: "Fit",
					Point: "Filter", MicrosecondsPerCall: 1.25, MillisecondsPerPod: 0.05},
			},
			Points: []bench.PointTime{{Point: "Filter", MillisecondsPer: 31}},
		},
		Against: []bench.Side{
			{
				Source: "default", Scheduler: "default-scheduler", Release: "v1.24.3", Rates: []float64{100,
					100}, Rate: 100, Ratio: 0.25,
				Plugins: []bench.PluginTime{{Plugin: "Fit", Point: "Filter", MillisecondsPerPod: 0.04}},
			},
			{Source: "b.yaml", Scheduler: "b", Release: "v1.24.3", Rates: []float64{50, 50}, Rate: 50, Ratio: 0.5},
		},
	}
	const want = `Alike/100Pods: 100 pods on 40 nodes, all created before the scheduler starts; 2 samples of each scheduler, in turn

SCHEDULER	NAME	RELEASE	PODS/S	SAMPLES	ATTEMPT (MEDIAN)	ATTEMPT (P99)
this	packer	v1.24.3	25.0	20.0, 30.0	1.50 ms	9.00 ms
default	default-scheduler	v1.24.3	100.0	100.0, 100.0	0.00 ms	0.00 ms
b.yaml	b	v1.24.3	50.0	50.0, 50.0	0.00 ms	0.00 ms

0.25 times the pods per second of default
0.50 times the pods per second of b.yaml

SLOWEST PLUGIN	EXTENSION POINT	TIME PER CALL	TIME PER POD	PER POD, default	PER POD, b.yaml
Sleepy	Filter	5100.0 µs	204.000 ms	-	-
Fit	Filter	1.2 µs	0.050 ms	0.040 ms	-

EXTENSION POINT	TIME PER POD
Filter	31.000 ms
`
	if diff := cmp.Diff(want, benchTable(r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, want := slowest(r.This), "; its slowest plugin is Sleepy at Filter: 5100 µs for each call"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := slowest(bench.Side{}); got != "" {
		t.Errorf("without measured plugins: %q", got)
	}
}

func TestUpstreamTable(t *testing.T) {
	r := &upstream.Result{
		Release: "v1.34.2", Labels: "performance", Samples: 2,
		Workloads: []upstream.Workload{
			{
				Name: "Basic/5000Nodes", Threshold: &upstream.Threshold{Metric: upstream.Throughput, Value: 680},
				This: upstream.Side{Source: "this", Rates: []float64{20, 30}, Rate: 25, Result: upstream.Missed,
					Reason: "SchedulingThroughput Average is 25"},
				Against: []upstream.Side{{Source: "default", Rates: []float64{800, 1200}, Rate: 1000, Ratio: 0.025,
					Result: upstream.Passed}},
			},
			{
				Name: "Claims/x", Threshold: &upstream.Threshold{Metric: "duration_seconds", Value: 0.5, Most: true},
				This: upstream.Side{Source: "this", Result: upstream.Failed, Reason: "op 3: timed out"},
			},
		},
	}
	const want = `scheduler_perf of v1.34.2, labels performance: 2 samples of each scheduler, in turn

WORKLOAD	SCHEDULER	PODS/S	SAMPLES	RATIO	THRESHOLD	RESULT
Basic/5000Nodes	this	25.0	20.0, 30.0	-	680	missed: SchedulingThroughput Average is 25
Basic/5000Nodes	default	1000.0	800.0, 1200.0	0.03	680	passed
Claims/x	this	-	-	-	duration_seconds 0.5	failed: op 3: timed out
`
	if diff := cmp.Diff(want, upstreamTable(r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
