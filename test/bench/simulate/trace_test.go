//go:build linux

package simulate

import (
	"flag"
	"fmt"
	"slices"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/test/internal/chart"
	"github.com/pmk-sched/pmk-sched/test/internal/trace"
)

var update = flag.Bool("update", false, "write the picture of the documentation")

// BenchmarkTrace places the pods of the trace, whose GPUs are an extended resource, with each
// preset.
func BenchmarkTrace(b *testing.B) {
	nodes, pods := trace.Files(b)
	snapshot := snapshotOf(b, "--from", nodes, "--from", pods)
	for b.Loop() {
		b.Logf("%15s  %6s  %8s  %11s  %s", "", "placed", "unplaced", "empty nodes", "utilization (coefficient of variation)")
		var lines []chart.Line
		for _, preset := range names() {
			r := simulate(b, preset, snapshot, "--preset", preset)
			s := r.Summary
			if s.Nodes != 1_523 || s.Placed+s.Unplaced != 8_152 {
				b.Errorf("%s: got %+v", preset, s)
			}
			b.Logf("%15s  %6d  %8d  %11d  %s", preset, s.Placed, s.Unplaced, len(s.After.EmptyNodes), distribution(s))
			if preset == "default" || preset == "binpack" || preset == "spread" {
				lines = append(lines, chart.Line{Name: preset, Points: sortedGPUs(b, r)})
			}
		}
		if *update {
			chart.Write(b, "openb-presets.svg", "Allocated GPUs of each node of the openb trace",
				chart.Axis{Title: "nodes with GPUs, the fullest first, %", To: 100, Every: 10},
				chart.Axis{Title: "GPUs allocated, %", To: 100, Every: 20}, lines...)
		}
	}
}

func distribution(s report.Summary) string {
	text := ""
	for _, u := range s.Utilization {
		i := slices.IndexFunc(s.After.Resources, func(r report.Balance) bool { return r.Resource == u.Resource })
		text += fmt.Sprintf("%s %.1f %% (%.2f)  ", u.Resource, 100*u.After, s.After.Resources[i].CoefficientOfVariation)
	}
	return text
}

// sortedGPUs returns the allocated part of each node's GPUs, the fullest node first.
func sortedGPUs(b *testing.B, r report.Report) []chart.Point {
	b.Helper()
	nodes, pods := trace.Read(b)
	requests, used := map[string]int64{}, map[string]int64{}
	for _, p := range pods {
		requests[p.Namespace+"/"+p.Name] = trace.Request(p)
	}
	for _, p := range r.Placements {
		amount, ok := requests[p.Namespace+"/"+p.Name]
		if !ok {
			b.Fatalf("no pod %s/%s in the trace", p.Namespace, p.Name)
		}
		used[p.Node] += amount
	}
	var parts []float64
	for _, n := range nodes {
		if has := n.Status.Allocatable.Name(trace.GPU, "").Value(); has > 0 {
			parts = append(parts, 100*float64(used[n.Name])/float64(has))
		}
	}
	slices.Sort(parts)
	slices.Reverse(parts)
	var points []chart.Point
	for i, part := range parts {
		points = append(points, chart.Point{X: 100 * float64(i) / float64(len(parts)), Y: part})
	}
	return points
}
