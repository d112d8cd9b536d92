//go:build linux

// Package simulate measures how long simulations of large clusters take and how much memory they
// need, with everything that they start, and compares presets: their speed, and their placements on
// the openb trace.
package simulate

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/largecluster"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/test/internal/samples"
)

func TestMain(m *testing.M) {
	run.Measured()
	os.Exit(m.Run())
}

// BenchmarkSimulate places pending pods in clusters of the sizes that docs/simulate.md names.
func BenchmarkSimulate(b *testing.B) {
	const page = "docs/simulate.md"
	var all []usage
	for _, size := range []struct {
		nodes, bound, pending int
		claim                 samples.Claimed
		mostMiB               float64
	}{
		{1_000, 5_000, 1_000, samples.Claim(page, "| 1,000 nodes, 5,000 pods | 1,000 | 14 s | 0.9 GiB |"), 1500},
		{5_000, 20_000, 5_000, samples.Claim(page, "| 5,000 nodes, 20,000 pods | 5,000 | 35 to 38 s | 2.0 GiB |"), 3000},
	} {
		b.Run(fmt.Sprintf("%d-nodes", size.nodes), func(b *testing.B) {
			snapshot := snapshotOf(b, "--from", cluster(b, size.nodes, size.bound, size.pending))
			var used usage
			for b.Loop() {
				s := simulate(b, &used, snapshot).Summary
				if s.Nodes != size.nodes || s.Pods != size.bound || s.Placed != size.pending {
					b.Errorf("got %+v", s)
				}
			}
			used.report(b, "total")
			size.claim.AtMost(b, "MiB", slices.Max(used.mebibytes), size.mostMiB)
			all = append(all, used)
		})
	}
	if len(all) == 2 { // both are selected
		samples.Claim("docs/performance.md", "with 5,000 nodes, 20,000 running and 5,000 pending pods, on two cores: 35 to 38 s").
			AtMost(b, "time of the large cluster/time of the small one", all[1].seconds.Mean()/all[0].seconds.Mean(), 5)
	}
}

// usage are the times and the memory of the runs of a benchmark.
type usage struct{ seconds, mebibytes samples.Set }

// report reports the mean of the times, and the most memory.
func (u usage) report(b *testing.B, name string) {
	b.Helper()
	u.seconds.ReportMean(b, name, "s")
	b.ReportMetric(slices.Max(u.mebibytes), name+"-MiB")
}

// snapshotOf returns the path of a snapshot from files.
func snapshotOf(b *testing.B, from ...string) string {
	b.Helper()
	file := filepath.Join(b.TempDir(), "cluster.tar.gz")
	run.PMKSched(b, append([]string{"snapshot", "--to-file", file}, from...)...).OK(b)
	return file
}

// simulate places the pending pods of a snapshot, and adds the time and the memory to used.
func simulate(b *testing.B, used *usage, snapshot string, args ...string) report.Report {
	b.Helper()
	watch := watchMemory(b)
	begin := time.Now()
	r := run.PMKSched(b, append([]string{"simulate", "pending", "--branch", apiserver.Release, "--snapshot", snapshot,
		"-o", "json"}, args...)...).OK(b)
	used.seconds = append(used.seconds, time.Since(begin).Seconds())
	used.mebibytes = append(used.mebibytes, watch())
	result := run.Decode[report.Report](b, r.Stdout)
	b.Logf("load %.1f s, schedule %.1f s\n%s", result.Summary.LoadSeconds, result.Summary.ScheduleSeconds, r.Stderr)
	return result
}

// cluster writes the list of a large cluster, and returns the path of the file.
func cluster(b *testing.B, nodes, bound, pending int) string {
	b.Helper()
	data, err := largecluster.List(nodes, bound, pending)
	if err != nil {
		b.Fatal(err)
	}
	return run.WriteFile(b, "cluster.json", string(data))
}
