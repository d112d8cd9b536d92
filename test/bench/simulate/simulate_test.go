//go:build linux

// Package simulate measures how long simulations of large clusters take and how much memory they
// need, with everything that they start, and compares presets: their speed, and their placements on
// the openb trace.
package simulate

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/largecluster"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

func TestMain(m *testing.M) {
	run.Measured()
	os.Exit(m.Run())
}

// BenchmarkSimulate places pending pods in clusters of the sizes that docs/simulate.md names.
func BenchmarkSimulate(b *testing.B) {
	for _, size := range []struct{ nodes, bound, pending int }{{1_000, 5_000, 1_000}, {5_000, 20_000, 5_000}} {
		b.Run(fmt.Sprintf("%d-nodes", size.nodes), func(b *testing.B) {
			snapshot := snapshotOf(b, "--from", cluster(b, size.nodes, size.bound, size.pending))
			for b.Loop() {
				s := simulate(b, "total", snapshot).Summary
				if s.Nodes != size.nodes || s.Pods != size.bound || s.Placed != size.pending {
					b.Errorf("got %+v", s)
				}
			}
		})
	}
}

// snapshotOf returns the path of a snapshot from files.
func snapshotOf(b *testing.B, from ...string) string {
	b.Helper()
	file := filepath.Join(b.TempDir(), "cluster.tar.gz")
	run.PMKSched(b, append([]string{"snapshot", "--to-file", file}, from...)...).OK(b)
	return file
}

// simulate places the pending pods of a snapshot, and reports the time and the memory under a name.
func simulate(b *testing.B, name, snapshot string, args ...string) report.Report {
	b.Helper()
	watch := watchMemory(b)
	begin := time.Now()
	r := run.PMKSched(b, append([]string{"simulate", "pending", "--branch", apiserver.Release, "--snapshot", snapshot,
		"-o", "json"}, args...)...).OK(b)
	b.ReportMetric(time.Since(begin).Seconds(), name+"-s")
	b.ReportMetric(watch(), name+"-MiB")
	result := run.Decode[report.Report](b, r.Stdout)
	b.Logf("%s: load %.1f s, schedule %.1f s\n%s", name, result.Summary.LoadSeconds, result.Summary.ScheduleSeconds,
		r.Stderr)
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
