//go:build linux

// Package conformance has the results of upstream's e2e specs of scheduling, which
// test/lab/conformance runs, and writes them as a page.
package conformance

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Column is the scheduler of a run.
type Column string

// The columns, in their order.
const (
	// Stock is the scheduler that kubeadm started.
	Stock Column = "stock"
	// Replaced is the default scheduler after `pmk-sched replace` with all bundled plugins.
	Replaced Column = "replace"
	// Second is a second scheduler with all bundled plugins, to which the pods of the namespaces of
	// the specs are routed.
	Second Column = "second"
)

// Columns returns all columns.
func Columns() []Column { return []Column{Stock, Replaced, Second} }

// The outcomes of a spec.
const (
	Passed = "passed"
	// Retried is a spec that failed, and passed when it was run once more.
	Retried = "passed when run again"
	Failed  = "failed"
	// Excluded is a spec that does not run on these labs; the note has the reason.
	Excluded = "excluded"
)

// Result is the result of a spec.
type Result struct {
	Release string
	Column  Column
	// Spec is the full name of the spec.
	Spec    string
	Outcome string
	// Seconds is how long it ran.
	Seconds float64
	// Note is the message of a failure, or the reason of an exclusion.
	Note string
}

func (r Result) passed() bool { return r.Outcome == Passed || r.Outcome == Retried }

// Read reads results that Write wrote.
func Read(from io.Reader) ([]Result, error) {
	rows, err := csv.NewReader(from).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read results: %w", err)
	}
	var all []Result
	for i, row := range rows {
		if len(row) != 6 {
			return nil, fmt.Errorf("read results: row %d has %d fields, want 6", i+1, len(row))
		}
		seconds, err := strconv.ParseFloat(row[4], 64)
		if err != nil {
			return nil, fmt.Errorf("read results: row %d: %w", i+1, err)
		}
		all = append(all, Result{row[0], Column(row[1]), row[2], row[3], seconds, row[5]})
	}
	return all, nil
}

// Write writes results in the order of Sort.
func Write(to io.Writer, results []Result) error {
	w := csv.NewWriter(to)
	for _, r := range Sort(results) {
		row := []string{r.Release, string(r.Column), r.Spec, r.Outcome, strconv.FormatFloat(r.Seconds, 'f', 1, 64), r.Note}
		if err := w.Write(row); err != nil {
			return fmt.Errorf("write results: %w", err)
		}
	}
	w.Flush()
	return w.Error()
}

// Put replaces the results of a release and a column.
func Put(all, results []Result) []Result {
	for _, r := range results {
		all = slices.DeleteFunc(all, func(old Result) bool { return old.Release == r.Release && old.Column == r.Column })
	}
	return append(all, results...)
}

// Sort returns the results, the newest release first, then by column and spec.
func Sort(results []Result) []Result {
	return slices.SortedFunc(slices.Values(results), func(a, b Result) int {
		return cmp.Or(newer(a.Release, b.Release), cmp.Compare(slices.Index(Columns(), a.Column), slices.Index(Columns(),
			b.Column)), cmp.Compare(a.Spec, b.Spec))
	})
}

func newer(a, b string) int {
	first, errA := versions.Parse(a)
	second, errB := versions.Parse(b)
	if errA != nil || errB != nil {
		return cmp.Compare(a, b)
	}
	return second.Compare(first)
}

// Worse returns the results of specs that pass with the stock scheduler of a release and not in
// another column.
func Worse(results []Result) []Result {
	stock := map[string]bool{}
	for _, r := range results {
		if r.Column == Stock && r.passed() {
			stock[r.Release+" "+r.Spec] = true
		}
	}
	var worse []Result
	for _, r := range Sort(results) {
		if !r.passed() && stock[r.Release+" "+r.Spec] {
			worse = append(worse, r)
		}
	}
	return worse
}

// File returns the path of the recorded results.
func File() string {
	return filepath.Join(run.Root(), "test", "internal", "conformance", "testdata", "results.csv")
}
