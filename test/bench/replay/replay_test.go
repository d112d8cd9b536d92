//go:build linux

// Package replay measures how long the replay of a day takes, and what it costs to record a large
// cluster.
package replay

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/foresight/replay"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/test/internal/samples"
)

func TestMain(m *testing.M) {
	run.Measured()
	os.Exit(m.Run())
}

const (
	nodes = 1_000
	pods  = 20_000
	day   = 24 * 3600
)

// BenchmarkDay replays a day of a cluster: pods arrive all day, most of them in the afternoon, and
// run for minutes, hours, or until its end.
func BenchmarkDay(b *testing.B) {
	dir := b.TempDir()
	write(b, filepath.Join(dir, "nodes.csv"), nodeList())
	write(b, filepath.Join(dir, "pods.csv"), podList())
	file := filepath.Join(dir, "day.tar.gz")
	run.PMKSched(b, "record", "--from", dir, "--archive", file).OK(b)
	var total, cpu samples.Set
	for b.Loop() {
		begin := time.Now()
		out, used := run.Measure(b, run.Program(b), "simulate", "replay", "--branch", apiserver.Release, "-o", "json", file)
		total, cpu = append(total, time.Since(begin).Seconds()), append(cpu, used.CPU) // of all programs
		r := run.Decode[replay.Result](b, out.OK(b).Stdout)
		b.Logf("%d groups of %g s in %.0f s: %d pods placed of %d, at most %d waiting, waits %+v, CPU %.1f %%", r.Groups,
			r.StepSeconds, r.WallSeconds, r.Replayed.Placed, r.Replayed.Arrived, r.Replayed.MostWaiting, r.Replayed.Waiting,
			100*r.Replayed.Mean.Utilization["cpu"])
		if r.Replayed.Arrived != pods || r.Replayed.Placed < pods*9/10 {
			b.Errorf("%d pods arrived, %d placed", r.Replayed.Arrived, r.Replayed.Placed)
		}
		claim := samples.Claim("docs/replay.md", "replay of a day: 20,000 pods on 1,000 nodes, 1,372 groups of a minute")
		claim.AtLeast(b, "number of groups", float64(r.Groups), 1300)
		claim.AtMost(b, "number of groups", float64(r.Groups), day/60)
	}
	total.ReportMean(b, "total", "s")
	cpu.ReportMean(b, "CPU", "s")
}

func write(b *testing.B, file, text string) {
	b.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
}

func nodeList() string {
	var text strings.Builder
	text.WriteString("sn,cpu_milli,memory_mib,gpu,model\n")
	for i := range nodes {
		gpus, model := 0, ""
		if i%10 == 0 {
			gpus, model = 8, "T4"
		}
		fmt.Fprintf(&text, "node-%04d,32000,131072,%d,%s\n", i, gpus, model)
	}
	return text.String()
}

// podList has pods in the order of their creation.
func podList() string {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same pods in each run
	created := make([]int, pods)
	for i := range created {
		created[i] = random.IntN(day)
		if i%2 == 0 {
			created[i] = day/2 + random.IntN(day/4)
		}
	}
	slices.Sort(created)
	var text strings.Builder
	text.WriteString("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time," +
		"scheduled_time\n")
	for i, at := range created {
		gpus, share := 0, 0
		if i%20 == 0 {
			gpus, share = 1, 1000
		}
		runs := 300 + random.IntN(2*3600)
		if i%8 == 0 {
			runs = day // longer than the day
		}
		fmt.Fprintf(&text, "pod-%05d,%d,%d,%d,%d,,LS,Succeeded,%d,%d,%d\n", i, 1000*(1+random.IntN(8)),
			2048*(1+random.IntN(8)), gpus, share, at, min(at+runs, day), at)
	}
	return text.String()
}
