//go:build linux

package simulate

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/foresight/bench/upstream"
	"github.com/pmk-sched/pmk-sched/test/internal/conformance"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/test/internal/samples"
)

// upstreamNoise is the relative difference of two medians of three samples of the same scheduler:
// the harness counts once a second, and 1,000 pods take seven or eight.
const upstreamNoise = 0.15

// BenchmarkUpstream measures workloads of Kubernetes' scheduler_perf at RELEASE (v1.37.1) without
// plugins and with each bundled plugin: ROUNDS (3) samples each, in turn.
func BenchmarkUpstream(b *testing.B) {
	release := cmp.Or(os.Getenv("RELEASE"), "v1.37.1")
	claim := samples.Claim("docs/performance.md", "each plugin but Timestamp has at least 0.85 times the rate without it")
	var against []string
	for _, file := range onePluginEach(b) {
		against = append(against, "--against", file)
	}
	for _, workload := range []string{
		"SchedulingBasic/500Nodes", "SchedulingPodAffinity/500Nodes", "PreemptionAsync/500Nodes",
		"SchedulingWithMixedChurn/1000Nodes", "GangScheduling/5000Nodes_1000Gangs_3000Pods",
	} {
		b.Run(workload, func(b *testing.B) {
			for b.Loop() {
				w := upstreamRates(b, release, workload, samples.Rounds(b, 3), against...)
				for _, s := range w.Against {
					plugin, ratio := strings.TrimSuffix(filepath.Base(s.Source), ".yaml"), s.Rate/w.This.Rate
					b.ReportMetric(ratio, plugin+"/none")
					if plugin != "timestamp" { // which sends a request for each pod
						claim.AtLeast(b, workload+": "+plugin+"/none", ratio, 1-upstreamNoise)
					}
				}
			}
		})
	}
}

// BenchmarkUpstreamThresholds measures workloads of scheduler_perf at RELEASE (v1.37.1) that have a
// threshold, with the preset throughput and with the default scheduler: ROUNDS (1) samples each, in
// turn. The thresholds are made for upstream's machines: the benchmark fails if only the preset
// misses one, or is slower than the default scheduler.
func BenchmarkUpstreamThresholds(b *testing.B) {
	release := cmp.Or(os.Getenv("RELEASE"), "v1.37.1")
	claim := samples.Claim("docs/performance.md", "the preset is faster in each")
	for _, workload := range []string{
		"SchedulingBasic/5000Nodes_10000Pods", "SchedulingWithMixedChurn/5000Nodes_10000Pods",
		"SchedulingWhileGated/1Node_10000GatedPods", "SchedulingDeletedPodsWithFinalizers/5000Node_5000DeletingPods",
	} {
		b.Run(workload, func(b *testing.B) {
			for b.Loop() {
				w := upstreamRates(b, release, workload, samples.Rounds(b, 1), "--preset", "throughput")
				if w.Threshold == nil {
					b.Fatalf("%s has no threshold", workload)
				}
				b.ReportMetric(w.Threshold.Value, "threshold")
				b.ReportMetric(w.This.Rate, "throughput")
				b.ReportMetric(w.Against[0].Rate, "default")
				claim.AtLeast(b, workload+": throughput/default", w.This.Rate/w.Against[0].Rate, 1)
			}
		})
	}
}

// upstreamRates measures a workload with a scheduler (this), which has no plugins unless args add
// them, and with other schedulers: so many samples each.
func upstreamRates(b *testing.B, release, workload string, rounds int, args ...string) upstream.Workload {
	b.Helper()
	args = append([]string{"bench", "--upstream", workload, "--branch", release,
		"--samples", fmt.Sprint(rounds), "-o", "json"}, args...)
	r := run.Decode[upstream.Result](b, run.PMKSched(b, args...).OK(b).Stdout)
	if len(r.Workloads) != 1 {
		b.Fatalf("got %d workloads", len(r.Workloads))
	}
	w := r.Workloads[0]
	for _, s := range append([]upstream.Side{w.This}, w.Against...) {
		if s.Result == upstream.Failed || len(s.Rates) != r.Samples {
			b.Fatalf("%s: %+v", s.Source, s)
		}
		b.Logf("%s: %s, %.0f pods/s, %.0f, %.2f", filepath.Base(s.Source), s.Result, s.Rate, s.Rates, s.Rate/w.This.Rate)
	}
	return w
}

// onePluginEach returns for each bundled plugin a file PLUGIN.yaml with a scheduler.
func onePluginEach(b *testing.B) (files []string) {
	b.Helper()
	bundled, err := v1alpha1.Decode([]byte(conformance.Description))
	if err != nil {
		b.Fatal(err)
	}
	for _, p := range bundled.Spec.Source.Plugins {
		one := bundled.DeepCopy()
		one.Spec.Source.Plugins = []v1alpha1.Plugin{p}
		text, err := yaml.Marshal(one)
		if err != nil {
			b.Fatal(err)
		}
		files = append(files, run.WriteFile(b, p.Builtin+".yaml", string(text)))
	}
	return files
}
