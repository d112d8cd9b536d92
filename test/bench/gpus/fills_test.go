//go:build linux

package gpus

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/chart"
	"github.com/pmk-sched/pmk-sched/test/internal/gputable"
	"github.com/pmk-sched/pmk-sched/test/internal/samples"
)

// fill is the result of filling the cluster once.
type fill struct {
	gputable.Draw
	// allocated are the values that draw.allocated returns.
	allocated []float64
}

type fills []fill

// askedFor are the percentages of requested GPUs at which the allocated GPUs are reported.
var askedFor = []int{95, 100, 105, 130}

// at returns the allocated GPUs at a percentage of requested GPUs.
func (all fills) at(list, side string, percent int) (values samples.Set) {
	for _, f := range all {
		if f.List == list && f.Side == side {
			values = append(values, f.allocated[percent-from])
		}
	}
	return values
}

// report reports the mean over all draws, the least and the most.
func (all fills) report(b *testing.B, list, side string) {
	b.Helper()
	for _, percent := range askedFor {
		all.at(list, side, percent).ReportMean(b, side, fmt.Sprintf("%%-of-%d", percent))
	}
}

// log logs a table for each of some percentages of requested GPUs.
func (all fills) log(b *testing.B, percentages ...int) {
	b.Helper()
	for _, percent := range percentages {
		var table samples.Table
		for _, f := range all {
			table.Add(f.List, f.Side, f.allocated[percent-from])
		}
		b.Log(table.MarkdownMean(fmt.Sprintf("%d %% asked for", percent),
			func(percent float64) string { return fmt.Sprintf("%.2f", percent) }))
	}
}

// checkAbove fails unless the plugin allocates so many percentage points more than other sides, at
// 100 % asked for, in each list that was measured with both.
func (all fills) checkAbove(b *testing.B, claim samples.Claimed, points float64, others ...string) {
	b.Helper()
	lists := map[string]bool{}
	for _, f := range all {
		lists[f.List] = true
	}
	for list := range lists {
		own := all.at(list, gputable.GPUPacking, 100)
		for _, other := range others {
			if set := all.at(list, other, 100); len(own) > 0 && len(set) == len(own) {
				claim.AtLeast(b, list+": percentage points above "+other, own.Mean()-set.Mean(), points)
			}
		}
	}
}

// record records the results that the tables of the page have.
func (all fills) record(b *testing.B) {
	b.Helper()
	var results []gputable.Result
	for _, f := range all {
		if gputable.IsShown(f.Release, f.Side) {
			results = append(results, gputable.Result{Draw: f.Draw, Allocated: f.allocated[100-from]})
		}
	}
	if err := gputable.Record(results...); err != nil {
		b.Fatal(err)
	}
}

// line is the results of a side in the picture.
type line struct{ name, title string }

// picture draws the mean over the draws from the list default, in a band from the least to the
// most, if there are results for each line.
func (all fills) picture(b *testing.B, lines ...line) {
	b.Helper()
	var drawing []chart.Line
	for _, l := range lines {
		drawn := chart.Line{Name: l.title}
		for percent := from; percent <= to; percent++ {
			set := all.at("default", l.name, percent)
			if len(set) == 0 {
				return
			}
			drawn.Points = append(drawn.Points, chart.Point{X: float64(percent), Y: set.Mean()})
			drawn.Low, drawn.High = append(drawn.Low, slices.Min(set)), append(drawn.High, slices.Max(set))
		}
		drawing = append(drawing, drawn)
	}
	chart.Write(b, "gpus.svg", "GPUs allocated without a scheduler against GPUs asked for",
		chart.Axis{Title: "GPUs asked for, % of the cluster's", From: from, To: to, Every: 10},
		chart.Axis{Title: "GPUs allocated, % of the cluster's", From: 75, To: 100, Every: 5}, drawing...)
}
