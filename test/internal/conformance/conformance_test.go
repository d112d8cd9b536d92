//go:build linux

package conformance

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

var update = flag.Bool("update", false, "write docs/conformance.md from the results")

func TestReportsOfBothGinkgosAreRead(t *testing.T) {
	for _, c := range []struct {
		name, report string
		want         []Result
	}{
		{"Ginkgo 1", `<testsuite name="Kubernetes e2e suite" tests="4">
			<testcase name="[sig-scheduling] A  passes [Conformance]" time="1.5"></testcase>
			<testcase name="[sig-scheduling] B fails" time="2"><failure type="Failure">pod was
				not bound</failure></testcase>
			<testcase name="[sig-apps] filtered out" time="0"><skipped></skipped></testcase>
			<testcase name="[sig-scheduling] D" time="0.1"><skipped message="skipped - 1 zone"></skipped></testcase>
			</testsuite>`, []Result{
			{Spec: "[sig-scheduling] A passes [Conformance]", Outcome: Passed, Seconds: 1.5},
			{Spec: "[sig-scheduling] B fails", Outcome: Failed, Seconds: 2, Note: "pod was not bound"},
			{Spec: "[sig-scheduling] D", Outcome: Excluded, Seconds: 0.1, Note: "skipped - 1 zone"},
		}},
		{"Ginkgo 2", `<testsuites><testsuite>
			<testcase name="[SynchronizedBeforeSuite]" status="passed" time="3"></testcase>
			<testcase name="[It] [sig-scheduling] A" status="passed" time="1"></testcase>
			<testcase name="[It] [sig-scheduling] B" status="failed" time="1"><failure message="no" type="failed">at</failure></testcase>
			<testcase name="[It] [sig-apps] filtered out" status="skipped" time="0"><skipped message="skipped"></skipped></testcase>
			<testcase name="[It] [sig-scheduling] D" status="interrupted" time="1"><error message="stopped"></error></testcase>
			</testsuite></testsuites>`, []Result{
			{Spec: "[sig-scheduling] A", Outcome: Passed, Seconds: 1},
			{Spec: "[sig-scheduling] B", Outcome: Failed, Seconds: 1, Note: "no"},
			{Spec: "[sig-scheduling] D", Outcome: Failed, Seconds: 1, Note: "stopped"},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, filtered, err := ParseReport([]byte(c.report))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"[sig-apps] filtered out"}, filtered); diff != "" {
				t.Errorf("filtered (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReportThatIsNoXMLIsAnError(t *testing.T) {
	if _, _, err := ParseReport([]byte("<testsuite><testcase")); err == nil {
		t.Error("no error")
	}
}

func TestReleaseAloneStandsForItsColumns(t *testing.T) {
	results := []Result{
		{Release: "v1.36.3", Column: Second},
		{Release: "v1.34.2", Column: Stock}, {Release: "v1.34.2", Column: Replaced}, {Release: "v1.34.2", Column: Second},
		{Release: "v1.24.3", Column: Stock}, {Release: "v1.24.3", Column: Replaced},
	}
	want := "v1.36.3 second, v1.34.2, v1.24.3 stock, v1.24.3 replace"
	if diff := cmp.Diff(want, places(results)); diff != "" {
		t.Errorf("places (-want +got):\n%s", diff)
	}
}

func TestSpecIsWorseIfOnlyTheStockSchedulerPassesIt(t *testing.T) {
	results := []Result{
		{Release: "v1.24.3", Column: Stock, Spec: "a", Outcome: Passed},
		{Release: "v1.24.3", Column: Stock, Spec: "b", Outcome: Failed},
		{Release: "v1.24.3", Column: Stock, Spec: "c", Outcome: Retried},
		{Release: "v1.24.3", Column: Replaced, Spec: "a", Outcome: Retried},
		{Release: "v1.24.3", Column: Replaced, Spec: "b", Outcome: Failed},
		{Release: "v1.24.3", Column: Replaced, Spec: "c", Outcome: Failed},
		{Release: "v1.24.3", Column: Second, Spec: "a", Outcome: Excluded},
		{Release: "v1.25.4", Column: Second, Spec: "c", Outcome: Failed},
	}
	if diff := cmp.Diff([]Result{results[5], results[6]}, Worse(results)); diff != "" {
		t.Errorf("worse (-want +got):\n%s", diff)
	}
}

func TestResultsOfAColumnAreReplacedAndRead(t *testing.T) {
	old := []Result{
		{Release: "v1.24.3", Column: Stock, Spec: "a", Outcome: Failed, Note: `it is "gone"`},
		{Release: "v1.24.3", Column: Second, Spec: "a", Outcome: Passed, Seconds: 1.5},
	}
	now := Put(old, []Result{{Release: "v1.24.3", Column: Stock, Spec: "b", Outcome: Passed}})
	var text bytes.Buffer
	if err := Write(&text, now); err != nil {
		t.Fatal(err)
	}
	got, err := Read(&text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Sort(now), got); diff != "" {
		t.Errorf("results (-written +read):\n%s", diff)
	}
	if len(got) != 2 || got[0].Spec != "b" {
		t.Errorf("results: got %+v, want b of stock and a of second", got)
	}
}

func TestTestIsWorseIfItFailsOnlyWithThePlugin(t *testing.T) {
	all := []Tests{
		{Release: "v1.24.3", Failed: []string{"TestA", "TestA"}},
		{Release: "v1.24.3", With: true, Failed: []string{"TestA", "TestB"}},
		{Release: "v1.29.2", Package: "bind", With: true, Failed: []string{"TestA"}},
	}
	if diff := cmp.Diff([]string{"v1.24.3  TestB", "v1.29.2 bind TestA"}, WorseTests(all)); diff != "" {
		t.Errorf("worse (-want +got):\n%s", diff)
	}
}

func TestRoundsAreAddedToThoseOfEarlierRuns(t *testing.T) {
	old := []Tests{
		{Release: "v1.24.3", Rounds: 1, Passed: 3, Seconds: 60, Failed: []string{"TestA", "TestB/with_comma,"}},
		{Release: "v1.37.1", Package: "bind", With: true, Rounds: 3, Passed: 9, Skipped: 1, Seconds: 4, Failed: []string{}},
	}
	now := AddTests(old,
		Tests{Release: "v1.24.3", Rounds: 2, Passed: 8, Skipped: 1, Seconds: 3, Failed: []string{"TestA"}},
		Tests{Release: "v1.24.3", With: true, Rounds: 2, Failed: []string{}})
	var text bytes.Buffer
	if err := WriteTests(&text, now); err != nil {
		t.Fatal(err)
	}
	got, err := ReadTests(&text)
	if err != nil {
		t.Fatal(err)
	}
	want := []Tests{
		old[1],
		{Release: "v1.24.3", Rounds: 3, Passed: 11, Skipped: 1, Seconds: 63,
			Failed: []string{"TestA", "TestB/with_comma,", "TestA"}},
		{Release: "v1.24.3", With: true, Rounds: 2, Failed: []string{}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
}

func TestFailedTestHasOneRowForAllReleases(t *testing.T) {
	table := integrationFailures([]Tests{
		{Release: "v1.24.3", Failed: []string{"TestA", "TestA"}},
		{Release: "v1.24.3", With: true, Failed: []string{"TestA"}},
		{Release: "v1.37.1", Package: "bind", Failed: []string{"TestA"}},
		{Release: "v1.37.1", Package: "bind", With: true, Failed: []string{"TestA", "TestB"}},
	})
	want := "| TestA | v1.37.1 bind, v1.24.3 . | 3 | 2 |\n| TestB | v1.37.1 bind | 0 | 1 |\n"
	if !strings.HasSuffix(table, "|\n"+want) {
		t.Errorf("got %s, want it to end with %s", table, want)
	}
	if table := integrationFailures([]Tests{{Release: "v1.24.3"}}); table != "" {
		t.Errorf("without failures: got %q", table)
	}
}

// The page shows the recorded results, in which no spec is worse than with the stock scheduler, and
// no integration test than without the plugin.
func TestPageShowsTheRecordedResults(t *testing.T) {
	results, err := Read(recorded(t, File()))
	if err != nil {
		t.Fatal(err)
	}
	tests, err := ReadTests(recorded(t, IntegrationFile()))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range Worse(results) {
		t.Errorf("%s: %s passes with the stock scheduler, but %s with %s: %s", r.Release, r.Spec, r.Outcome, r.Column, r.Note)
	}
	for _, name := range WorseTests(tests) {
		t.Errorf("%s fails only with the plugin", name)
	}
	page := filepath.Join(run.Root(), "docs", "conformance.md")
	if *update {
		if err := os.WriteFile(page, []byte(Page(results, tests)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Page(results, tests), string(have)); diff != "" {
		t.Errorf("docs/conformance.md is not of these results: run make conformance (-results +page):\n%s", diff)
	}
}

func recorded(t *testing.T, file string) *bytes.Reader {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(data)
}
