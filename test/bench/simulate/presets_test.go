//go:build linux

package simulate

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/foresight/bench"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/test/internal/samples"
)

const (
	// perSide is the number of samples of each scheduler.
	perSide = 5
	// noise is the relative difference of two measurements of the same scheduler on a machine with
	// other work.
	noise = 0.1
)

// Pages with the figures of BenchmarkPresets. Each limit is below the least of the samples there.
var (
	overStock     = samples.Claim("README.md", "binds 7 to 11 times as many pods per second as the default scheduler")
	fastOverStock = samples.Claim("README.md", "with the preset `throughput` 17 to 22 times as many")
	fastOverPlain = samples.Claim("docs/configuration.md", "it binds 1.9 to 2.6 times as many pods per second")
	measured      = samples.Claim("docs/performance.md", "| v1.24.3 | 53 (53 to 53) | 353 (323 to 370) | 913 (868 to 974) |")
)

// BenchmarkPresets compares the pods per second of the presets with the default scheduler, as
// Kubernetes configures it (stock) and without the rate limit of its client (default): five samples
// each, in turn.
func BenchmarkPresets(b *testing.B) {
	for _, x := range []struct {
		release     string
		nodes, pods int
		presets     []string
		least       float64 // throughput/default
	}{
		{"v1.24.3", 5000, 2000, names("default", "throughput"), 2},
		{"v1.29.2", 5000, 2000, nil, 1.6}, // the API server, on the same cores, is the limit
		{"v1.37.1", 5000, 2000, nil, 1.6},
		{"v1.24.3", 500, 2000, nil, 1 - noise},
		{"v1.24.3", 100, 2000, nil, 1 - noise},
	} {
		b.Run(fmt.Sprintf("%s/%d-nodes", x.release, x.nodes), func(b *testing.B) {
			for b.Loop() {
				r := rates(b, x.release, x.nodes, x.pods, x.presets)
				for _, s := range r.Sides() {
					samples.Set(s.Rates).ReportMedian(b, s.Source, "pods/s")
					b.Logf("%-16s %6.1f pods/s, %.1f, attempt %.1f ms", s.Source, s.Rate, s.Rates, s.Attempt.P50)
				}
				plain, stock := r.Against[0].Ratio, r.Against[1].Ratio // throughput is so many times as fast
				fastOverPlain.AtLeast(b, "throughput/default", plain, x.least)
				if x.nodes == 5000 {
					overStock.AtLeast(b, "default/stock", stock/plain, 5)
					fastOverStock.AtLeast(b, "throughput/stock", stock, 12)
					measured.AtMost(b, "pods per second of stock, whose client is limited to 50 requests per second",
						r.Against[1].Rate, 60)
				}
			}
		})
	}
}

// names returns the names of the presets but some.
func names(without ...string) []string {
	var all []string
	for _, preset := range profiles.Presets() {
		if !slices.Contains(without, preset.Name) {
			all = append(all, preset.Name)
		}
	}
	return all
}

// rates measures throughput, default, stock and more presets on nodes that are alike.
func rates(b *testing.B, release string, nodes, pods int, presets []string) *bench.Result {
	b.Helper()
	args := []string{
		"bench", "--branch", release, "--nodes", fmt.Sprint(nodes), "--pods", fmt.Sprint(pods),
		"--samples", fmt.Sprint(perSide), "--preset", "throughput",
		"--against", "default", "--against", "testdata/stock.yaml", "-o", "json",
	}
	for _, preset := range presets {
		file := run.WriteFile(b, preset, strings.Join([]string{
			"apiVersion: pmk-sched.io/v1alpha1", "kind: CustomScheduler", "metadata: {name: " + preset +
				"}", "spec: {configuration: {preset: " + preset + "}}", "",
		}, "\n"))
		args = append(args, "--against", file)
	}
	r := run.Decode[bench.Result](b, run.PMKSched(b, args...).OK(b).Stdout)
	r.This.Source = "throughput"
	for i := range r.Against {
		r.Against[i].Source = r.Against[i].Scheduler
	}
	r.Against[0].Source = "default"
	for _, s := range r.Sides() {
		if len(s.Rates) != perSide || s.Rate <= 0 || s.Unbound > 0 {
			b.Errorf("%s: %.1f pods/s, %d pods without a node", s.Source, s.Rates, s.Unbound)
		}
	}
	return &r
}
