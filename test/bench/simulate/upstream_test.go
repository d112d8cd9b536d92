//go:build linux

package simulate

import (
	"cmp"
	"fmt"
	"os"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/foresight/bench/upstream"
	"github.com/pmk-sched/pmk-sched/test/internal/conformance"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/test/internal/samples"
)

// upstreamNoise is the relative difference of two medians of three samples of the same scheduler:
// the API server, in the same process, takes most of the time.
const upstreamNoise = 0.15

// BenchmarkUpstream measures workloads of Kubernetes' scheduler_perf at RELEASE (v1.37.1) without
// plugins and with each bundled plugin: ROUNDS (3) samples each, in turn.
func BenchmarkUpstream(b *testing.B) {
	release := cmp.Or(os.Getenv("RELEASE"), "v1.37.1")
	claim := samples.Claim("docs/performance.md", "each plugin but Timestamp has at least 0.85 times the rate without it")
	names, files := onePluginEach(b)
	for _, workload := range []string{
		"SchedulingBasic/500Nodes", "SchedulingPodAffinity/500Nodes", "PreemptionAsync/500Nodes",
		"SchedulingWithMixedChurn/1000Nodes", "GangScheduling/5000Nodes_1000Gangs_3000Pods",
	} {
		b.Run(workload, func(b *testing.B) {
			args := []string{"bench", "--upstream", workload, "--branch", release,
				"--samples", fmt.Sprint(samples.Rounds(b, 3)), "-o", "json"}
			for _, file := range files {
				args = append(args, "--against", file)
			}
			for b.Loop() {
				r := run.Decode[upstream.Result](b, run.PMKSched(b, args...).OK(b).Stdout)
				if len(r.Workloads) != 1 {
					b.Fatalf("got %d workloads", len(r.Workloads))
				}
				without := r.Workloads[0].This
				for i, s := range append([]upstream.Side{without}, r.Workloads[0].Against...) {
					if s.Result == upstream.Failed || len(s.Rates) != r.Samples {
						b.Fatalf("%s: %+v", s.Source, s)
					}
					b.Logf("%s: %.0f pods/s, %.0f, %.2f", names[i], s.Rate, s.Rates, s.Rate/without.Rate)
					b.ReportMetric(s.Rate/without.Rate, names[i]+"/none")
					if names[i] != "timestamp" { // which sends a request for each pod
						claim.AtLeast(b, workload+": "+names[i]+"/none", s.Rate/without.Rate, 1-upstreamNoise)
					}
				}
			}
		})
	}
}

// onePluginEach returns a file with a scheduler for each bundled plugin. names begins with the name
// of the scheduler without plugins.
func onePluginEach(b *testing.B) (names, files []string) {
	b.Helper()
	bundled, err := v1alpha1.Decode([]byte(conformance.Description))
	if err != nil {
		b.Fatal(err)
	}
	names = []string{"none"}
	for _, p := range bundled.Spec.Source.Plugins {
		one := bundled.DeepCopy()
		one.Spec.Source.Plugins = []v1alpha1.Plugin{p}
		text, err := yaml.Marshal(one)
		if err != nil {
			b.Fatal(err)
		}
		names = append(names, p.Builtin)
		files = append(files, run.WriteFile(b, p.Builtin+".yaml", string(text)))
	}
	return names, files
}
