//go:build linux

package gpus

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/chart"
	"github.com/pmk-sched/pmk-sched/test/internal/samples"
)

// result is one run of a side or policy.
type result struct {
	workload, side string
	seed           uint64
	// allocated are the values that allocation returns.
	allocated []float64
}

// results are the runs of the release on a number of nodes. The file with them lets a measurement
// of hours be made in parts; results on another number of nodes replace it.
type results struct {
	nodes int
	runs  []result
}

const file = "testdata/allocated.csv"

// columns are the first columns of the file; the others are the percentages of requested GPUs.
var columns = []string{"release", "nodes", "workload", "side", "seed"}

// read reads the results of the release and the number of nodes from the file.
func (all *results) read(b *testing.B) {
	b.Helper()
	in, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		b.Fatal(err)
	}
	defer in.Close()
	rows, err := csv.NewReader(in).ReadAll()
	if err != nil {
		b.Fatalf("read %s: %v", file, err)
	}
	for _, row := range rows[1:] {
		if row[0] != release || row[1] != fmt.Sprint(all.nodes) {
			continue
		}
		r := result{workload: row[2], side: row[3]}
		if r.seed, err = strconv.ParseUint(row[4], 10, 64); err != nil {
			b.Fatalf("read %s: %v", file, err)
		}
		for _, text := range row[len(columns):] {
			percent, err := strconv.ParseFloat(text, 64)
			if err != nil {
				b.Fatalf("read %s: %v", file, err)
			}
			r.allocated = append(r.allocated, percent)
		}
		all.add(r)
	}
}

// put adds a result, or replaces the result of the same workload, side and seed. With -update it
// writes the file.
func (all *results) put(b *testing.B, r result) {
	b.Helper()
	b.Logf("%s, %s, seed %d: allocated %.1f %% at 100 %%, %.1f %% at %d %%", r.workload, r.side, r.seed,
		r.allocated[100-from], r.allocated[to-from], to)
	all.add(r)
	if *update {
		all.write(b)
	}
}

func (all *results) add(r result) {
	same := func(o result) bool { return o.workload == r.workload && o.side == r.side && o.seed == r.seed }
	if i := slices.IndexFunc(all.runs, same); i >= 0 {
		all.runs[i] = r
		return
	}
	all.runs = append(all.runs, r)
}

func (all results) write(b *testing.B) {
	b.Helper()
	header := slices.Clone(columns)
	for percent := from; percent <= to; percent++ {
		header = append(header, fmt.Sprint(percent))
	}
	rows := [][]string{header}
	for _, r := range all.runs {
		row := []string{release, fmt.Sprint(all.nodes), r.workload, r.side, fmt.Sprint(r.seed)}
		for _, percent := range r.allocated {
			row = append(row, fmt.Sprintf("%.2f", percent))
		}
		rows = append(rows, row)
	}
	out, err := os.Create(file)
	if err != nil {
		b.Fatal(err)
	}
	if err := errors.Join(csv.NewWriter(out).WriteAll(rows), out.Close()); err != nil {
		b.Fatal(err)
	}
}

func (all results) tables() tables {
	t := newTables()
	for _, r := range all.runs {
		t.add(r.side, r.workload, r.allocated)
	}
	return t
}

// line is the results of a side or policy in the picture.
type line struct{ name, title string }

// picture draws the mean over the draws from the trace as it is, in a band from the least to the
// most, if there are results for each line.
func (all results) picture(b *testing.B, lines ...line) {
	b.Helper()
	var drawing []chart.Line
	for _, l := range lines {
		drawn := chart.Line{Name: l.title}
		for percent := from; percent <= to; percent++ {
			var set samples.Set
			for _, r := range all.runs {
				if r.workload == "default" && r.side == l.name {
					set = append(set, r.allocated[percent-from])
				}
			}
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
