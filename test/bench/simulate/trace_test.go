//go:build linux

package simulate

import (
	"flag"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/test/internal/chart"
	"github.com/pmk-sched/pmk-sched/test/internal/samples"
	"github.com/pmk-sched/pmk-sched/test/internal/trace"
)

var update = flag.Bool("update", false, "write the picture of the documentation")

// claims are the rows of the pages by preset, with pods without a node and empty nodes.
var claims = map[string]struct {
	claim             samples.Claimed
	unplaced, empties int
}{
	"default":         {samples.Claim("docs/simulate.md", "| `default` | 8,106 | 46 | 6 |"), 46, 6},
	"binpack":         {samples.Claim("docs/simulate.md", "| `binpack` | 7,748 | 404 | 139 |"), 404, 139},
	"spread":          {samples.Claim("docs/simulate.md", "| `spread` | 8,111 | 41 | 0 |"), 41, 0},
	"capacity-ratio":  {samples.Claim("docs/configuration.md", "| `capacity-ratio` | 527 | 227 |"), 527, 227},
	"topology-spread": {samples.Claim("docs/configuration.md", "| `topology-spread` | 53 | 6 |"), 53, 6},
	"throughput":      {samples.Claim("docs/configuration.md", "| `throughput` | 63 | 10 |"), 63, 10},
}

// some is how much repeated runs may differ: by some ten pods, the pages say.
const some = 50

// BenchmarkTrace places the pods of the trace, whose GPUs are an extended resource, with each
// preset.
func BenchmarkTrace(b *testing.B) {
	nodes, pods := trace.Files(b)
	snapshot := snapshotOf(b, "--from", nodes, "--from", pods)
	used := map[string]*usage{}
	for b.Loop() {
		b.Logf("%15s  %6s  %8s  %11s  %s", "", "placed", "unplaced", "empty nodes", "utilization (coefficient of variation)")
		var lines []chart.Line
		for _, preset := range names() {
			if used[preset] == nil {
				used[preset] = &usage{}
			}
			r := simulate(b, used[preset], snapshot, "--preset", preset)
			s := r.Summary
			if s.Nodes != 1_523 || s.Placed+s.Unplaced != 8_152 {
				b.Errorf("%s: got %+v", preset, s)
			}
			c := claims[preset]
			c.claim.AtMost(b, "difference in pods without a node", math.Abs(float64(s.Unplaced-c.unplaced)), some)
			c.claim.AtMost(b, "difference in empty nodes", math.Abs(float64(len(s.After.EmptyNodes)-c.empties)), some)
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
	for preset, u := range used {
		u.report(b, preset)
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
