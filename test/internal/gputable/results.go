// Package gputable has the results of test/bench/gpus and of the authors of the openb trace, and
// writes the tables of the page of GPUPacking.
package gputable

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// NoScheduler is the release of results without a kube-scheduler.
const NoScheduler = "none"

// Draw identifies a run: the cluster is filled once with pods from a list.
type Draw struct {
	// Release is the release of the kube-scheduler, or NoScheduler.
	Release string
	// List is the list of the pods, and Side the policy.
	List, Side string
	Seed       int64
}

// Result is the result of a run on all nodes.
type Result struct {
	Draw
	// Allocated are the allocated GPUs at 100 % asked for, in percent of the cluster's.
	Allocated float64
}

func columns() []string { return []string{"release", "list", "side", "seed", "allocated"} }

// Read reads results that Write wrote.
func Read(from io.Reader) ([]Result, error) {
	rows, err := csv.NewReader(from).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read results: %w", err)
	}
	var all []Result
	for i, row := range rows {
		if !slices.Equal(rows[0], columns()) {
			return nil, fmt.Errorf("read results: the columns are %q, want %q", rows[0], columns())
		} else if i == 0 {
			continue
		}
		seed, err := strconv.ParseInt(row[3], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("read results: row %d: %w", i+1, err)
		}
		percent, err := strconv.ParseFloat(row[4], 64)
		if err != nil {
			return nil, fmt.Errorf("read results: row %d: %w", i+1, err)
		}
		all = append(all, Result{Draw{row[0], row[1], row[2], seed}, percent})
	}
	return all, nil
}

// Write writes results, sorted.
func Write(to io.Writer, results []Result) error {
	w := csv.NewWriter(to)
	rows := [][]string{columns()}
	for _, r := range sorted(results) {
		rows = append(rows, []string{r.Release, r.List, r.Side, fmt.Sprint(r.Seed), fmt.Sprintf("%.2f", r.Allocated)})
	}
	if err := w.WriteAll(rows); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

func sorted(results []Result) []Result {
	return slices.SortedFunc(slices.Values(results), func(a, b Result) int {
		return cmp.Or(cmp.Compare(a.Release, b.Release), cmp.Compare(a.List, b.List), cmp.Compare(a.Side, b.Side),
			cmp.Compare(a.Seed, b.Seed))
	})
}

// Put adds a result, or replaces the one of the same run.
func Put(all []Result, r Result) []Result {
	if i := slices.IndexFunc(all, func(o Result) bool { return o.Draw == r.Draw }); i >= 0 {
		all = slices.Clone(all)
		all[i] = r
		return all
	}
	return append(all, r)
}

// File returns the path of the recorded results.
func File() string {
	return filepath.Join(run.Root(), "test", "bench", "gpus", "testdata", "allocated.csv")
}

// ReadFile reads the recorded results.
func ReadFile() ([]Result, error) {
	in, err := os.Open(File())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return Read(in)
}

// Record adds results to the recorded ones, so that hours can be measured in parts.
func Record(results ...Result) error {
	all, err := ReadFile()
	if err != nil {
		return err
	}
	for _, r := range results {
		all = Put(all, r)
	}
	out, err := os.Create(File())
	if err != nil {
		return err
	}
	return errors.Join(Write(out, all), out.Close())
}
