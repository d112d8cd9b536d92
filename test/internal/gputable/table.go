package gputable

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/test/internal/samples"
)

// Sides of the tables.
const (
	Default       = "default"
	MostAllocated = "mostallocated"
	GPUPacking    = "gpupacking"
)

// column is a column of a table.
type column struct {
	title string
	// side is the side here, or policy the one of the authors.
	side, policy string
}

// columnsOf returns the columns of the table of a release.
func columnsOf(release string) []column {
	if release == NoScheduler {
		return []column{
			{"random", "random", ""}, {"random, published", "", random},
			{"best fit", "best-fit", ""}, {"best fit, published", "", bestFit},
			{"FGD", "fgd", ""}, {"FGD, published", "", fgd}, {"GPUPacking", GPUPacking, ""},
		}
	}
	return []column{
		{"default scores", Default, ""}, {"MostAllocated", MostAllocated, ""}, {"GPUPacking", GPUPacking, ""},
		{"best fit, published", "", bestFit}, {"GPU packing, published", "", gpuPacking}, {"FGD, published", "", fgd},
	}
}

// IsShown reports whether the table of a release has a side.
func IsShown(release, side string) bool {
	return slices.ContainsFunc(columnsOf(release), func(c column) bool { return c.side == side })
}

// Table returns the table of a release: the mean at 100 % asked for of each list and side, with the
// least and the most, and the difference of GPUPacking from FGD in the published runs with the same
// seeds.
func Table(results []Result, authors Authors, release string) string {
	var table strings.Builder
	table.WriteString("| 100 % asked for | draws |")
	columns := columnsOf(release)
	for _, c := range columns {
		table.WriteString(" " + c.title + " |")
	}
	table.WriteString(" GPUPacking − FGD, published |\n|---|---|" + strings.Repeat("---|", len(columns)) + "---|\n")
	for _, list := range authors.lists() {
		d := drawsOf(results, authors, release, list)
		if len(d.own) == 0 {
			continue
		}
		fmt.Fprintf(&table, "| `%s` | %d |", list, len(d.own))
		for _, c := range columns {
			values := valuesOf(results, release, list, c.side)
			if c.policy != "" {
				values = authors.of(list, c.policy)
			}
			table.WriteString(" " + cell(values) + " |")
		}
		fmt.Fprintf(&table, " %+.2f |\n", d.difference())
	}
	return table.String()
}

func cell(values samples.Set) string {
	if len(values) == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f (%.1f–%.1f)", values.Mean(), slices.Min(values), slices.Max(values))
}

// draws are the results of GPUPacking and the published ones of FGD with the same seeds.
type draws struct{ own, published samples.Set }

func (d draws) difference() float64 { return d.own.Mean() - d.published.Mean() }

func drawsOf(results []Result, authors Authors, release, list string) (d draws) {
	for _, r := range sorted(results) {
		percent, ok := authors[published{list, fgd, r.Seed}]
		if ok && r.Release == release && r.List == list && r.Side == GPUPacking {
			d.own, d.published = append(d.own, r.Allocated), append(d.published, percent)
		}
	}
	return d
}

func valuesOf(results []Result, release, list, side string) (values samples.Set) {
	for _, r := range results {
		if r.Release == release && r.List == list && r.Side == side {
			values = append(values, r.Allocated)
		}
	}
	return values
}

// Limits of GPUPacking against the published mean of FGD.
const (
	// most is by how many percentage points GPUPacking may be below it in a list.
	most = 0.5
	// lists is the number of lists with all draws from which on GPUPacking has to be at or above it in
	// eleven of sixteen.
	lists = 16
)

// Missed returns the limits that the results of a release do not keep, in lists with all draws.
func Missed(results []Result, authors Authors, release string) (missed []string) {
	complete, above := 0, 0
	for _, list := range authors.lists() {
		d := drawsOf(results, authors, release, list)
		if len(d.own) < len(Seeds()) {
			continue
		}
		complete++
		if d.difference() >= 0 {
			above++
		}
		if d.difference() < -most {
			missed = append(missed, fmt.Sprintf("%s: GPUPacking allocates %.2f percentage points less than FGD, at most %.1f are "+
				"allowed", list, -d.difference(), most))
		}
	}
	if complete >= lists && above*lists < 11*complete {
		missed = append(missed, fmt.Sprintf("GPUPacking is at or above FGD in %d of %d lists, want 11 of %d", above, complete,
			lists))
	}
	return missed
}

// releases returns the releases of results.
func releases(results []Result) (all []string) {
	for _, r := range sorted(results) {
		if !slices.Contains(all, r.Release) {
			all = append(all, r.Release)
		}
	}
	return all
}
