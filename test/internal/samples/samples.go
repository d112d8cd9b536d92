// Package samples summarizes the results of benchmarks: several samples of each side, taken in
// turn.
package samples

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Set are the samples of one side.
type Set []float64

// Median returns the middle sample, the greater one of two, or 0 without samples.
func (s Set) Median() float64 {
	if len(s) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(s))[len(s)/2]
}

// Mean returns the mean, or 0 without samples.
func (s Set) Mean() float64 {
	sum := 0.0
	for _, sample := range s {
		sum += sample
	}
	return sum / float64(max(1, len(s)))
}

// ReportMedian reports the median, the minimum and the maximum as metrics of a benchmark.
func (s Set) ReportMedian(b *testing.B, name, unit string) {
	b.Helper()
	s.report(b, name+"-p50-"+unit, s.Median(), name, unit)
}

// ReportMean reports the mean, the minimum and the maximum.
func (s Set) ReportMean(b *testing.B, name, unit string) {
	b.Helper()
	s.report(b, name+"-mean-"+unit, s.Mean(), name, unit)
}

func (s Set) report(b *testing.B, center string, value float64, name, unit string) {
	b.Helper()
	if len(s) == 0 {
		b.Fatalf("%s has no samples", name)
	}
	b.ReportMetric(value, center)
	b.ReportMetric(slices.Min(s), name+"-min-"+unit)
	b.ReportMetric(slices.Max(s), name+"-max-"+unit)
}

// Claimed is a text of a page of the documentation that depends on figures of a benchmark.
type Claimed struct{ page, text string }

// Claim names a text of a page, whose path is relative to the root of the project. A test at the
// root checks that the page has the text.
func Claim(page, text string) Claimed { return Claimed{page, text} }

// reporter is the part of a benchmark that reports a failure.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
}

// AtLeast fails the benchmark if the claim does not hold because a figure is less than least. A
// figure is a ratio of sides of the same run, a number, an amount of memory, or a time with a limit
// far above it: a slow machine does not fail.
func (c Claimed) AtLeast(b reporter, figure string, got, least float64) {
	b.Helper()
	if !(got >= least) { //nolint:staticcheck // also if it is not a number
		c.fail(b, figure, got, "least", least)
	}
}

// AtMost fails the benchmark if a figure is more than most.
func (c Claimed) AtMost(b reporter, figure string, got, most float64) {
	b.Helper()
	if !(got <= most) { //nolint:staticcheck // also if it is not a number
		c.fail(b, figure, got, "most", most)
	}
}

func (c Claimed) fail(b reporter, figure string, got float64, bound string, limit float64) {
	b.Helper()
	b.Errorf("%s claims %q: expected %s of at %s %.4g, got %.4g", c.page, c.text, figure, bound, limit, got)
}

// Turn returns the sides in the order of a round: each side is the first one in turn, so that the
// after-effects of a side affect all others alike.
func Turn[T any](sides []T, round int) []T {
	first := round % len(sides)
	return slices.Concat(sides[first:], sides[:first])
}

// Rounds returns the number in the environment variable ROUNDS, or the given number if it is not
// set.
func Rounds(b *testing.B, otherwise int) int { return Setting(b, "ROUNDS", otherwise) }

// Setting returns the number in an environment variable, or the given number if it is not set.
func Setting(b *testing.B, variable string, otherwise int) int {
	b.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	number, err := strconv.Atoi(text)
	if err != nil || number < 1 {
		b.Fatalf("invalid %s %q: must be a positive number", variable, text)
	}
	return number
}

// Table holds the samples of each row and side, in the order in which they were added.
type Table struct {
	rows, sides []string
	sets        map[[2]string]Set
}

// Add adds a sample.
func (t *Table) Add(row, side string, sample float64) {
	if t.sets == nil {
		t.sets = map[[2]string]Set{}
	}
	if !slices.Contains(t.rows, row) {
		t.rows = append(t.rows, row)
	}
	if !slices.Contains(t.sides, side) {
		t.sides = append(t.sides, side)
	}
	t.sets[[2]string{row, side}] = append(t.sets[[2]string{row, side}], sample)
}

// Of returns the samples of a row and side.
func (t *Table) Of(row, side string) Set { return t.sets[[2]string{row, side}] }

// Markdown returns a table with the median and the maximum of each row and side.
func (t *Table) Markdown(title string, format func(float64) string) string {
	return t.markdown(title+", p50 / max", func(s Set) string {
		return format(s.Median()) + " / " + format(slices.Max(s))
	})
}

// MarkdownMean returns a table with the mean, the minimum and the maximum of each row and side.
func (t *Table) MarkdownMean(title string, format func(float64) string) string {
	return t.markdown(title, func(s Set) string {
		return fmt.Sprintf("%s (%s–%s)", format(s.Mean()), format(slices.Min(s)), format(slices.Max(s)))
	})
}

func (t *Table) markdown(title string, cell func(Set) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n| %s |", title)
	for _, side := range t.sides {
		fmt.Fprintf(&b, " %s |", side)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(t.sides)) + "\n")
	for _, row := range t.rows {
		fmt.Fprintf(&b, "| %s |", row)
		for _, side := range t.sides {
			text := "-"
			if s := t.Of(row, side); len(s) > 0 {
				text = cell(s)
			}
			fmt.Fprintf(&b, " %s |", text)
		}
		b.WriteString("\n")
	}
	return b.String()
}
