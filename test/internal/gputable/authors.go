package gputable

import (
	"encoding/csv"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// Policies of the authors.
const (
	random     = "01-Random"
	gpuPacking = "04-GpuPacking"
	bestFit    = "05-BestFit"
	fgd        = "06-FGD"
)

// Seeds returns the seeds of the authors' runs.
func Seeds() (all []int64) {
	for seed := int64(42); seed <= 51; seed++ {
		all = append(all, seed)
	}
	return all
}

// published is a run of the authors.
type published struct {
	list, policy string
	seed         int64
}

// Authors are the GPUs that the authors' policies allocate at 100 % asked for, in percent of the
// cluster's.
type Authors map[published]float64

// ReadAuthors reads the columns of the authors' file analysis_allo_discrete.csv that AuthorsFile
// has.
func ReadAuthors(from io.Reader) (Authors, error) {
	rows, err := csv.NewReader(from).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read published results: %w", err)
	}
	all := Authors{}
	for i, row := range rows {
		if want := []string{"workload", "sc_policy", "seed", "100"}; i == 0 && !slices.Equal(row, want) {
			return nil, fmt.Errorf("read published results: the columns are %q, want %q", row, want)
		} else if i == 0 {
			continue
		}
		seed, err := strconv.ParseInt(row[2], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("read published results: row %d: %w", i+1, err)
		}
		percent, err := strconv.ParseFloat(row[3], 64)
		if err != nil {
			return nil, fmt.Errorf("read published results: row %d: %w", i+1, err)
		}
		all[published{strings.TrimPrefix(row[0], "openb_pod_list_"), row[1], seed}] = percent
	}
	return all, nil
}

// AuthorsFile returns the path of the published results, columns 1, 2, 4 and 106 of
// experiments/analysis/expected_results/analysis_allo_discrete.csv in
// github.com/hkust-adsl/kubernetes-scheduler-simulator (8f3d641, Apache-2.0).
func AuthorsFile() string {
	return filepath.Join(run.Root(), "test", "bench", "gpus", "testdata", "authors.csv")
}

// of returns the results of a list and policy, in the order of Seeds.
func (a Authors) of(list, policy string) (values []float64) {
	for _, seed := range Seeds() {
		if percent, ok := a[published{list, policy, seed}]; ok {
			values = append(values, percent)
		}
	}
	return values
}

// lists returns the names of the lists.
func (a Authors) lists() (all []string) {
	for key := range a {
		if !slices.Contains(all, key.list) {
			all = append(all, key.list)
		}
	}
	slices.Sort(all)
	return all
}
