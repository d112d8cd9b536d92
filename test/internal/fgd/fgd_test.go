package fgd_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/test/internal/fgd"
)

// node has 8 cores and GPUs of the model T4.
func node(free ...int64) fgd.Node { return fgd.Node{CPU: 8000, GPUs: free, Model: "T4"} }

func TestFragmentIsTheFreeGPUThatAPodCannotUse(t *testing.T) {
	for name, tc := range map[string]struct {
		node fgd.Node
		pod  fgd.Demand
		want float64
	}{
		"a share, all GPUs have enough":      {node(500, 1000), fgd.Demand{CPU: 1000, GPU: 500}, 0},
		"a share, one GPU has too little":    {node(400, 1000), fgd.Demand{CPU: 1000, GPU: 500}, 400},
		"a share, no GPU has enough":         {node(400, 300), fgd.Demand{CPU: 1000, GPU: 500}, 700},
		"two GPUs, parts are of no use":      {node(1000, 600, 1000), fgd.Demand{CPU: 1000, GPU: 2000}, 600},
		"two GPUs, one is free":              {node(1000, 600), fgd.Demand{CPU: 1000, GPU: 2000}, 1600},
		"too little CPU":                     {node(1000, 600), fgd.Demand{CPU: 8001, GPU: 500}, 1600},
		"no GPU":                             {node(1000, 600), fgd.Demand{CPU: 1000}, 1600},
		"a model of the node":                {node(1000, 600), fgd.Demand{GPU: 500, Models: "P100|T4"}, 0},
		"another model":                      {node(1000, 600), fgd.Demand{GPU: 500, Models: "P100|T"}, 1600},
		"no GPU is free":                     {node(0, 0), fgd.Demand{GPU: 500}, 0},
		"a node without GPUs has no GPU":     {node(), fgd.Demand{GPU: 500}, 0},
		"a whole GPU, a part is of no use":   {node(999, 1000), fgd.Demand{GPU: 1000}, 999},
		"a whole GPU, the CPU is just right": {node(999, 1000), fgd.Demand{CPU: 8000, GPU: 1000}, 999},
	} {
		if got := (fgd.Workload{{Demand: tc.pod, Share: 1}}).Fragment(tc.node); got != tc.want {
			t.Errorf("%s: expected %v, got %v", name, tc.want, got)
		}
	}
}

func TestFragmentOfAWorkloadIsTheWeightedSum(t *testing.T) {
	w := fgd.Workload{{fgd.Demand{GPU: 500}, 0.5}, {fgd.Demand{CPU: 9000, GPU: 100}, 0.3}, {fgd.Demand{CPU: 1000}, 0.2}}
	if got, want := w.Fragment(node(400, 1000)), 0.5*400+0.3*1400+0.2*1400; math.Abs(got-want) > 1e-9 {
		t.Errorf("expected %v, got %v", want, got)
	}
}

func TestScoreIsAWholeNumberThatRisesWithTheDescent(t *testing.T) {
	for descent, want := range map[float64]float64{
		0: 50, 1000: 73, -1000: 26, -1: 49, 8000: 99, -8000: 0, 40: 50, 41: 51,
	} {
		if got := fgd.Score(descent); got != want {
			t.Errorf("%v: expected %v, got %v", descent, want, got)
		}
	}
}

// The workload needs 0.3 GPUs and whole ones in equal parts.
func TestPlaceChoosesTheSteepestDescent(t *testing.T) {
	w := fgd.Workload{{fgd.Demand{GPU: 300}, 0.5}, {fgd.Demand{GPU: 1000}, 0.5}}
	descent := func(d float64) float64 { return d }
	for name, tc := range map[string]struct {
		node  fgd.Node
		pod   fgd.Demand
		score func(float64) float64
		gpus  []int
		best  float64
	}{
		// Of the first GPU 500 stay, which whole GPUs lack as before: 0.5 × 200 less. Of the second 800
		// stay: 0.5 × 800 more.
		"a GPU that is in use already": {node(700, 1000), fgd.Demand{GPU: 200}, descent, []int{0}, 100},
		// Of the first GPU 300 stay (0.5 × 200 less), of the second nothing (200 less).
		"a part that no other pod can use": {node(500, 200), fgd.Demand{GPU: 200}, descent, []int{1}, 200},
		// 15 less and 30 less, which both have the score 50: the first one.
		"GPUs that differ by less than 1": {node(900, 30), fgd.Demand{GPU: 30}, fgd.Score, []int{0}, 50},
		"GPUs that differ":                {node(900, 30), fgd.Demand{GPU: 30}, descent, []int{1}, 30},
		"several whole GPUs":              {node(500, 1000, 1000, 1000), fgd.Demand{GPU: 2000}, descent, []int{1, 2}, 0},
		"no GPU":                          {node(500, 1000), fgd.Demand{CPU: 1000}, descent, nil, 0},
	} {
		gpus, best := w.Place(tc.node, tc.pod, tc.score)
		if diff := cmp.Diff(tc.gpus, gpus); diff != "" || math.Abs(best-tc.best) > 1e-9 {
			t.Errorf("%s: got %v with %v, expected %v with %v", name, gpus, best, tc.gpus, tc.best)
		}
	}
}

func TestTypicalPodsAreTheMostFrequentOnes(t *testing.T) {
	var demands []fgd.Demand
	add := func(count int, d fgd.Demand) {
		for range count {
			demands = append(demands, d)
		}
	}
	add(4, fgd.Demand{GPU: 100})
	add(16, fgd.Demand{CPU: 1000})
	add(80, fgd.Demand{GPU: 1000, Models: "T4"})
	want := fgd.Workload{{fgd.Demand{GPU: 1000, Models: "T4"}, 80.0 / 96}, {fgd.Demand{CPU: 1000}, 16.0 / 96}}
	if diff := cmp.Diff(want, fgd.Typical(demands)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
