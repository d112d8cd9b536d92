//go:build linux

package conformance

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// Tests is the outcome of a package of upstream's integration tests, in all rounds.
type Tests struct {
	Release, Package string
	// With is set if every scheduler of the tests has the plugin.
	With                    bool
	Rounds, Passed, Skipped int
	Seconds                 float64
	// Failed are the tests that failed, once for each round in which they did.
	Failed []string
}

// IntegrationFile returns the path of the recorded outcomes of the integration tests.
func IntegrationFile() string {
	return filepath.Join(run.Root(), "test", "internal", "conformance", "testdata", "integration.csv")
}

// ReadTests reads outcomes that WriteTests wrote.
func ReadTests(from io.Reader) ([]Tests, error) {
	rows, err := csv.NewReader(from).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read outcomes: %w", err)
	}
	var all []Tests
	for i, row := range rows {
		if len(row) != 8 {
			return nil, fmt.Errorf("read outcomes: row %d has %d fields, want 8", i+1, len(row))
		}
		t := Tests{Release: row[0], Package: row[1], Failed: strings.Fields(row[7])}
		var failed [5]error
		t.With, failed[0] = strconv.ParseBool(row[2])
		t.Rounds, failed[1] = strconv.Atoi(row[3])
		t.Passed, failed[2] = strconv.Atoi(row[4])
		t.Skipped, failed[3] = strconv.Atoi(row[5])
		t.Seconds, failed[4] = strconv.ParseFloat(row[6], 64)
		if err := errors.Join(failed[:]...); err != nil {
			return nil, fmt.Errorf("read outcomes: row %d: %w", i+1, err)
		}
		all = append(all, t)
	}
	return all, nil
}

// WriteTests writes outcomes, the newest release first, then by package, without the plugin first.
func WriteTests(to io.Writer, all []Tests) error {
	w := csv.NewWriter(to)
	for _, t := range sortTests(all) {
		row := []string{t.Release, t.Package, strconv.FormatBool(t.With), strconv.Itoa(t.Rounds), strconv.Itoa(t.Passed),
			strconv.Itoa(t.Skipped), strconv.FormatFloat(t.Seconds, 'f', 0, 64), strings.Join(t.Failed, " ")}
		if err := w.Write(row); err != nil {
			return fmt.Errorf("write outcomes: %w", err)
		}
	}
	w.Flush()
	return w.Error()
}

func sortTests(all []Tests) []Tests {
	side := map[bool]int{true: 1}
	return slices.SortedFunc(slices.Values(all), func(a, b Tests) int {
		return cmp.Or(newer(a.Release, b.Release), cmp.Compare(a.Package, b.Package), cmp.Compare(side[a.With], side[b.With]))
	})
}

// AddTests adds the rounds of a run to those of earlier runs of the same release and package.
func AddTests(all []Tests, outcomes ...Tests) []Tests {
	all = slices.Clone(all)
	for _, o := range outcomes {
		i := slices.IndexFunc(all, func(t Tests) bool {
			return t.Release == o.Release && t.Package == o.Package && t.With == o.With
		})
		if i < 0 {
			all = append(all, o)
			continue
		}
		t := all[i]
		all[i] = Tests{t.Release, t.Package, t.With, t.Rounds + o.Rounds, t.Passed + o.Passed, t.Skipped + o.Skipped,
			t.Seconds + o.Seconds, slices.Concat(t.Failed, o.Failed)}
	}
	return all
}

// Name returns the name of one of the tests among those of all releases and packages.
func (t Tests) Name(test string) string { return t.Release + " " + t.Package + " " + test }

// WorseTests returns the names of the tests of each release that fail only with the plugin.
func WorseTests(all []Tests) (worse []string) {
	without := map[string]bool{}
	for _, t := range all {
		for _, name := range t.Failed {
			without[t.Name(name)] = without[t.Name(name)] || !t.With
		}
	}
	for _, name := range slices.Sorted(maps.Keys(without)) {
		if !without[name] {
			worse = append(worse, name)
		}
	}
	return worse
}

const integrationHead = `
## Integration tests

` + "`make integration RELEASE=v1.24.3`" + ` runs the integration tests of the scheduler that Kubernetes
publishes with a release (` + "`test/integration/scheduler`, which is `.` in the table" + `, and the packages
in it) as they are, and with a portable plugin in every scheduler that they start. The plugin has
every extension point but QueueSort, and no effect, so the tests show what the adapter changes. The
run fails if a test fails only with the plugin, and its rounds are added to those of earlier runs.
Tests and their subtests count, once for each round. Packages that a row does not name were not run.

| release | packages | rounds | passed without | passed with | failed without | failed with | skipped | minutes per side |
|---|---|---|---|---|---|---|---|---|
`

// integration returns the section with the outcomes of the integration tests.
func integration(all []Tests) string {
	if len(all) == 0 {
		return ""
	}
	var page strings.Builder
	page.WriteString(integrationHead)
	type side struct {
		rounds, passed, failed, skipped int
		seconds                         float64
	}
	type row struct {
		release  string
		packages []string
		sides    map[bool]side
	}
	var rows []row
	for _, t := range sortTests(all) {
		if len(rows) == 0 || rows[len(rows)-1].release != t.Release {
			rows = append(rows, row{release: t.Release, sides: map[bool]side{}})
		}
		r := &rows[len(rows)-1]
		if t.With {
			r.packages = append(r.packages, cmp.Or(t.Package, "."))
		}
		s := r.sides[t.With]
		r.sides[t.With] = side{max(s.rounds, t.Rounds), s.passed + t.Passed, s.failed + len(t.Failed),
			s.skipped + t.Skipped, s.seconds + t.Seconds}
	}
	for _, r := range rows {
		without, with := r.sides[false], r.sides[true]
		fmt.Fprintf(&page, "| %s | %s | %d | %d | %d | %d | %d | %d | %.0f |\n", r.release,
			strings.Join(r.packages, ", "), with.rounds, without.passed, with.passed,
			without.failed, with.failed, with.skipped, max(without.seconds, with.seconds)/60)
	}
	page.WriteString(integrationFailures(all))
	return page.String()
}

// integrationFailures returns the table of the tests that failed on a side. A test has one row for
// all releases.
func integrationFailures(all []Tests) string {
	byTest := map[string][]Tests{}
	for _, t := range sortTests(all) {
		for _, name := range t.Failed {
			byTest[name] = append(byTest[name], t)
		}
	}
	if len(byTest) == 0 {
		return ""
	}
	var table strings.Builder
	table.WriteString("\nTests that failed, and in how many rounds without the plugin and with it:\n\n" +
		"| test | release and package | without | with |\n|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(byTest)) {
		var where []string
		rounds := map[bool]int{}
		for _, t := range byTest[name] {
			where = append(where, t.Release+" "+cmp.Or(t.Package, "."))
			rounds[t.With]++
		}
		fmt.Fprintf(&table, "| %s | %s | %d | %d |\n", cell(name), strings.Join(slices.Compact(where), ", "),
			rounds[false], rounds[true])
	}
	return table.String()
}
