package matrix

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
)

// someOutcome is an outcome with so many pods that it takes several lines.
func someOutcome(pods int) Outcome {
	random := rand.New(rand.NewPCG(1, 2))
	r := &report.Report{Scenario: "pending", Release: "v1.24.3", Scheduler: "packer", Notes: []string{"a note"},
		Capacity: &report.Capacity{Copies: 3}}
	for i := range pods {
		r.Placements = append(r.Placements, report.Placement{Namespace: "shop",
			Name: fmt.Sprintf("web-%d-%x", i, random.Uint64()), Node: fmt.Sprintf("node-%d", random.IntN(1000))})
	}
	r.Unplaced = []report.Unplaced{{Namespace: "shop", Name: "huge",
		Reason: "0/3 nodes are available: 3 Insufficient cpu."}}
	r.Summary.Utilization = []report.Utilization{{Resource: "cpu", Allocatable: "12", Before: 0.1, After: 1.0 / 3}}
	r.Finish()
	return newOutcome(r, nil)
}

// written returns the lines of an outcome in a log.
func written(t *testing.T, index int, o Outcome) []string {
	t.Helper()
	var log bytes.Buffer
	if err := writeOutcome(&log, index, o); err != nil {
		t.Fatal(err)
	}
	return strings.SplitAfter(strings.TrimSuffix(log.String(), "\n"), "\n")
}

// The list of simulations of a search has configurations that are nearly the same.
func TestListOfSimulationsFitsInAnEnvironmentVariable(t *testing.T) {
	var cells []plannedCell
	for i := range 600 {
		cells = append(cells, plannedCell{Snapshot: i % 3, ConfigurationName: fmt.Sprintf("trial %d", i),
			Configuration: strings.Repeat("# a line of the configuration\n", 100) + fmt.Sprintf("weight: %d\n", i)})
	}
	text, err := packCells(cells)
	if err != nil {
		t.Fatal(err)
	}
	got, err := unpackCells(text)
	if diff := cmp.Diff(cells, got, cmpopts.IgnoreUnexported(plannedCell{})); diff != "" || err != nil {
		t.Errorf("%v (-packed +unpacked):\n%s", err, diff)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range cells {
		noise := make([]byte, 400)
		for j := range noise {
			noise[j] = byte(random.IntN(256))
		}
		cells[i].Configuration = base64.StdEncoding.EncodeToString(noise)
	}
	if _, err := packCells(cells); !problem.IsInvalid(err) {
		t.Errorf("a list that is too long: %v", err)
	}
	for _, text := range []string{"", "H4sI", "no base64", base64.StdEncoding.EncodeToString([]byte("no gzip"))} {
		if _, err := unpackCells(text); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

func TestOutcomesAreReadFromLogsAsTheyWereWritten(t *testing.T) {
	failed := newOutcome(nil, problem.Errorf("do this", "it failed"))
	for name, o := range map[string]Outcome{"small": someOutcome(1), "large": someOutcome(50_000), "error": failed} {
		lines := written(t, 7, o)
		log := "a message\n" + strings.Join(lines, "another message\n") + "\nthe last message\n"
		got, err := readOutcome(strings.NewReader(log), 7)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(o, got, cmpopts.IgnoreUnexported(report.Report{})); diff != "" {
			t.Errorf("%s (-written +read):\n%s", name, diff)
		}
		for _, line := range lines {
			if len(line) > 16<<10 {
				t.Errorf("%s: a line has %d bytes, which container runtimes split", name, len(line))
			}
		}
		if name == "large" && (len(lines) < 10 || len(log) > 5<<20) {
			t.Errorf("the log of 50,000 pods has %d lines and %d bytes", len(lines), len(log))
		}
	}
	if err := failed.err(); err.Error() != "it failed" || !cmp.Equal(problem.Hints(err), []string{"do this"}) {
		t.Errorf("the error is %v with hints %q", err, problem.Hints(err))
	}
}

func TestIncompleteLogsAreRefused(t *testing.T) {
	lines := written(t, 2, someOutcome(5000))
	if len(lines) < 6 {
		t.Fatalf("only %d lines", len(lines))
	}
	last := len(lines) - 1
	changed := strings.Replace(lines[1], lines[1][100:104], "AAAA", 1)
	for name, c := range map[string]struct {
		log  []string
		want string
	}{
		"empty":                 {nil, "the end of the result is missing"},
		"rotated":               {lines[3:], "line 0 of the result is missing"},
		"without a middle line": {append(append([]string{}, lines[:2]...), lines[3:]...), "line 2 of the result is missing"},
		"cut off":               {lines[:last-1], "the end of the result is missing"},
		"only the end":          {lines[last:], "the checksum of the result differs"},
		"half a line":           {[]string{lines[0], lines[1][:100] + "\n"}, "line 1 of the result"},
		"a changed line":        {append([]string{lines[0], changed}, lines[2:]...), "the checksum of the result differs"},
		"another simulation":    {written(t, 3, someOutcome(1)), "line 0 of the result is missing"},
	} {
		_, err := readOutcome(strings.NewReader(strings.Join(c.log, "")), 2)
		if err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(strings.Join(problem.Hints(err), ""), "containerLogMaxSize") {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}
