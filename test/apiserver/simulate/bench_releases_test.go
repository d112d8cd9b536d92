//go:build linux && releases

package simulate

import (
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/foresight/bench/upstream"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// Upstream's harness runs with a bundled plugin that is enabled, in its releases with the workloads
// in one file and in topics.
func TestUpstreamsWorkloadsRunWithABundledPlugin(t *testing.T) {
	for release, topic := range map[string]string{"v1.30.14": "", "v1.34.2": "misc"} {
		result := run.PMKSched(t, "bench", "--upstream", "SchedulingBasic/500Nodes", "--branch", release,
			"--with", "builtin:gpupacking", "--samples", "1", "-o", "json").OK(t)
		r := run.Decode[upstream.Result](t, result.Stdout)
		if len(r.Workloads) != 1 || r.Release != release {
			t.Fatalf("%s: got %+v", release, r)
		}
		w := r.Workloads[0]
		equal(t, release+": workload", [2]string{"SchedulingBasic/500Nodes", topic}, [2]string{w.Name, w.Topic})
		for _, s := range append(w.Against, w.This) {
			if s.Result != upstream.Passed || s.Rate <= 0 {
				t.Errorf("%s: %+v", release, s)
			}
		}
	}
}
