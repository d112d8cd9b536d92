//go:build linux && releases

package simulate

import (
	"cmp"
	"os"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/foresight/bench/upstream"
	"github.com/pmk-sched/pmk-sched/test/internal/conformance"
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

// All workloads that upstream's own tests run in a release: RELEASE, by default 1.34.
func TestUpstreamsIntegrationWorkloadsPassWithAllBundledPlugins(t *testing.T) {
	release := cmp.Or(os.Getenv("RELEASE"), "v1.34.2")
	file := run.WriteFile(t, "pmk-sched.yaml", conformance.Description)
	result := run.PMKSched(t, "bench", "--upstream", "integration-test", "--branch", release, "-f", file,
		"--samples", "1", "-o", "json").OK(t)
	r := run.Decode[upstream.Result](t, result.Stdout)
	if len(r.Workloads) < 9 || r.Release != release { // as many as 1.30 has
		t.Fatalf("got %d workloads of %s", len(r.Workloads), r.Release)
	}
	for _, w := range r.Workloads {
		for _, s := range append(w.Against, w.This) {
			if s.Result != upstream.Passed {
				t.Errorf("%s: %+v", w.Name, s)
			}
		}
	}
	t.Logf("%s: %d workloads", release, len(r.Workloads))
}
