package gputable

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the tables of the page from the results")

func TestResultsOfARunAreReplacedAndRead(t *testing.T) {
	first := Result{Draw{"v1.24.3", "default", GPUPacking, 43}, 95.25}
	other := Result{Draw{"v1.24.3", "default", GPUPacking, 42}, 95}
	all := Put(Put(Put(nil, first), other), Result{first.Draw, 95.5})
	var text bytes.Buffer
	if err := Write(&text, all); err != nil {
		t.Fatal(err)
	}
	got, err := Read(&text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Result{other, {first.Draw, 95.5}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWrongFilesAreRefused(t *testing.T) {
	const results, authors = "release,list,side,seed,allocated\n", "workload,sc_policy,seed,100\n"
	for text, want := range map[string]string{
		"release\n":                   "columns",
		results + "r,l,s,x,95\n":      "row 2",
		results + "r,l,s,42,x\n":      "row 2",
		results + "r,l,s,42\n":        "wrong number of fields",
		authors + "l,p,42,95\n":       "columns",
		results + "r,l,s,42,95,1,1\n": "wrong number of fields",
	} {
		if _, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("results %q: got %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		results:                   "columns",
		authors + "l,p,x,95\n":    "row 2",
		authors + "l,p,42,x\n":    "row 2",
		authors + "l,p,42,95,1\n": "wrong number of fields",
	} {
		if _, err := ReadAuthors(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("published %q: got %v, want %s", text, err, want)
		}
	}
}

// made returns results of all draws from lists with published means of FGD of 95 %, for which
// GPUPacking differs by so many percentage points.
func made(differences ...float64) (results []Result, authors Authors) {
	authors = Authors{}
	for i, difference := range differences {
		for _, seed := range Seeds() {
			list, spread := fmt.Sprintf("list-%02d", i), float64(seed-42)/10
			authors[published{list, fgd, seed}] = 94.55 + spread
			results = append(results, Result{Draw{"v1.24.3", list, GPUPacking, seed}, 94.55 + spread + difference})
		}
	}
	return results, authors
}

func TestTableHasTheListsWithResults(t *testing.T) {
	results, authors := made(0.25, 0)
	authors[published{"list-00", bestFit, 42}] = 90
	authors[published{"list-00", bestFit, 43}] = 91
	results = append(results[:3], Result{Draw{"v1.24.3", "list-00", Default, 42}, 80},
		Result{Draw{"v1.29.2", "list-01", Default, 42}, 80})
	want := `| 100 % asked for | draws | default scores | MostAllocated | GPUPacking | best fit, published | GPU packing, published | FGD, published | GPUPacking − FGD, published |
|---|---|---|---|---|---|---|---|---|
| ` + "`list-00`" + ` | 3 | 80.0 (80.0–80.0) | – | 94.9 (94.8–95.0) | 90.5 (90.0–91.0) | – | 95.0 (94.5–95.5) | +0.25 |
`
	if diff := cmp.Diff(want, Table(results, authors, "v1.24.3")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMissedLimitsOfListsWithAllDraws(t *testing.T) {
	even := make([]float64, 16)
	below := func(n int) []float64 {
		all := make([]float64, 16)
		for i := range n {
			all[i] = -0.3
		}
		return all
	}
	for name, c := range map[string]struct {
		differences []float64
		want        int
	}{
		"as good":                         {even, 0},
		"far below in one":                {append([]float64{-0.51}, even...), 1},
		"below in five of sixteen":        {below(5), 0},
		"below in six of sixteen":         {below(6), 1},
		"below in six of fewer than them": {below(6)[:15], 0},
	} {
		results, authors := made(c.differences...)
		for i := range results {
			results[i].Allocated += 1e-9 // of the sums of floating-point numbers
		}
		if got := Missed(results, authors, "v1.24.3"); len(got) != c.want {
			t.Errorf("%s: got %q, want %d", name, got, c.want)
		}
		if got := Missed(results[1:], authors, "v1.24.3"); name == "far below in one" && len(got) != 0 {
			t.Errorf("without a draw: got %q", got)
		}
	}
}

func TestPageWithoutThePlaceOfATableIsRefused(t *testing.T) {
	const both = beforePolicies + after + beforeSchedulers + after
	if _, err := Page(both, nil, nil); err != nil {
		t.Error(err)
	}
	for _, page := range []string{"", beforePolicies + after, beforeSchedulers + after, strings.TrimSuffix(both, after)} {
		if _, err := Page(page, nil, nil); err == nil {
			t.Errorf("%q: no error", page)
		}
	}
}

// The page of the plugin has the recorded results, which keep the limits.
func TestPageShowsTheRecordedResults(t *testing.T) {
	results, err := ReadFile()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(AuthorsFile())
	if err != nil {
		t.Fatal(err)
	}
	authors, err := ReadAuthors(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if want := 17 * 6 * len(Seeds()); len(authors) != want {
		t.Errorf("%s has %d results, want %d", AuthorsFile(), len(authors), want)
	}
	for _, release := range releases(results) {
		for _, missed := range Missed(results, authors, release) {
			t.Errorf("%s: %s", release, missed)
		}
	}
	have, err := os.ReadFile(PageFile())
	if err != nil {
		t.Fatal(err)
	}
	want, err := Page(string(have), results, authors)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(PageFile(), []byte(want), 0o644); err != nil { //nolint:gosec // documentation
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(have)); diff != "" {
		t.Errorf("the tables of %s are not of these results: run make fgd-table (-results +page):\n%s", PageFile(), diff)
	}
}
