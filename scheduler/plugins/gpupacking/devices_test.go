package gpupacking

import (
	"testing"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

// Devices of pods that another scheduler has bound are unknown: the pods have the emptiest devices.
func TestPodsThatFitOnNoDeviceTakeFromTheEmptiest(t *testing.T) {
	g := newPlugin(t, &plugintest.Handle{}, args)
	cases := map[string]struct {
		first, second, unknown int64 // requests on devices 0 and 1, and on unknown devices
		left                   int64 // on the device with the most free
	}{
		"from both":                 {500, 500, 600, 400},
		"the least from the second": {500, 500, 501, 499},
		"from the emptier one":      {400, 700, 700, 200},
		"from the last one":         {700, 400, 700, 200},
		"all":                       {500, 500, 1000, 0},
		"more than there is":        {500, 500, 1700, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			node := gpuNode("n", 2, gpuPod("a", tc.first, "0"), gpuPod("b", tc.second, "1"), gpuPod("c", tc.unknown, ""))
			for gpu, want := range map[int64]bool{tc.left: true, tc.left + 1: false} {
				status := g.Filter(t.Context(), plugintest.NewState(), gpuPod("new", gpu, ""), node)
				if got := status.IsSuccess(); got != want {
					t.Errorf("%d more: %v, want %t", gpu, status, want)
				}
			}
		})
	}
}

// Filter uses the requests that PreFilter has read, and reads them itself without these.
func TestFilterUsesTheRequestsOfPreFilter(t *testing.T) {
	g := newPlugin(t, &plugintest.Handle{}, args)
	node := gpuNode("n", 1, gpuPod("a", 600, "0"))
	cases := map[string]struct {
		prepare func(scheduler.State)
		gpu     int64
		want    scheduler.Code
	}{
		"of PreFilter": {func(s scheduler.State) {
			g.PreFilter(t.Context(), s, gpuPod("new", 400, ""))
		}, 500, scheduler.CodeSuccess},
		"without a state":            {func(scheduler.State) {}, 500, scheduler.CodeUnschedulable},
		"with a value of other type": {func(s scheduler.State) { s.Write(stateKey, "?") }, 500, scheduler.CodeUnschedulable},
		"of the smallest part":       {func(scheduler.State) {}, 1, scheduler.CodeSuccess},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			state := plugintest.NewState()
			tc.prepare(state)
			if got := g.Filter(t.Context(), state, gpuPod("new", tc.gpu, ""), node); got.Code() != tc.want {
				t.Errorf("got %v, want code %v", got, tc.want)
			}
		})
	}
	if got := g.Filter(t.Context(), plugintest.NewState(), gpuPod("new", 1, ""), gpuNode("none", 0)); got.IsSuccess() {
		t.Error("a pod that requests the smallest part fits on a node without devices")
	}
}
