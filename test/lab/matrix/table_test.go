//go:build linux && labs

package matrix

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// stages are the columns of the table that a run ends with.
var stages = []string{"lab up", "detect", "build", "deploy", "again", "verify", "pods", "serviceaccount", "uninstall"}

// row is the result for one subject.
type row struct {
	subject
	seconds map[string]float64
	passed  bool
}

// rows are filled by one test after the other.
var rows []*row

// begin adds the row of a subject. When the test ends, the row records whether it passed.
func begin(t *testing.T, s subject) *row {
	t.Helper()
	r := &row{subject: s, seconds: map[string]float64{}}
	rows = append(rows, r)
	t.Cleanup(func() { r.passed = !t.Failed() })
	return r
}

// stage runs a part of the test and notes how long it took.
func (r *row) stage(name string, do func()) {
	start := time.Now()
	do()
	r.seconds[name] = time.Since(start).Seconds()
}

// printTable writes the rows as a table in Markdown, times in seconds.
func printTable(w io.Writer) {
	if len(rows) == 0 {
		return
	}
	out := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	fmt.Fprintf(out, "\n| release\t| layout\t| %s\t| result\t|\n", strings.Join(stages, "\t| "))
	fmt.Fprintf(out, "|---\t|---\t%s|---\t|\n", strings.Repeat("|---\t", len(stages)))
	for _, r := range rows {
		cells := []string{r.release, r.layout}
		for _, name := range stages {
			cell := "-"
			if seconds, ran := r.seconds[name]; ran {
				cell = fmt.Sprintf("%.0f", seconds)
			}
			cells = append(cells, cell)
		}
		outcome := "**failed**"
		if r.passed {
			outcome = "passed"
		}
		fmt.Fprintf(out, "| %s\t| %s\t|\n", strings.Join(cells, "\t| "), outcome)
	}
	_ = out.Flush()
}
