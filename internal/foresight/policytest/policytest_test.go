package policytest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

const head = "apiVersion: pmk-sched.io/v1alpha1\nkind: SchedulingTest\n"

// Of a directory the tests are run, and everything that they name is watched.
func TestTestsOfADirectory(t *testing.T) {
	dir := t.TempDir()
	in := func(names ...string) (all []string) {
		for _, name := range names {
			all = append(all, filepath.Join(dir, name))
		}
		return all
	}
	for name, text := range map[string]string{
		"a.yaml": head + "objects: [cluster.yaml]\nexpect: [{pod: a, node: b}, {sameAs: {scheduler: new.yaml}}]\n",
		"sub/b.yml": head + "steps: [{scenario: add, files: [train.yaml]}, {scenario: nodes, add: {../n.yaml: 1, n: 2}}]\n" +
			"expect: [{pod: a, node: b}]\n",
		"cluster.yaml": "kind: Pod\n", "c.json": head,
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := Request{Paths: []string{dir}, Snapshots: []string{"s.tar.gz", "-"}}
	found, err := r.find()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(in("a.yaml", "sub/b.yml"), found); diff != "" {
		t.Errorf("tests (-want +got):\n%s", diff)
	}
	watched := append([]string{dir, "s.tar.gz"}, in("cluster.yaml", "new.yaml", "n.yaml", "sub/train.yaml")...)
	if diff := cmp.Diff(watched, r.Watched()); diff != "" {
		t.Errorf("watched (-want +got):\n%s", diff)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "none"): "read test: ", filepath.Join(dir, "sub", "empty"): "no test is there",
	} {
		if strings.HasSuffix(path, "empty") {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		_, err := Request{Paths: []string{path}}.find()
		if !problem.IsInvalid(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", path, err)
		}
	}
}

func TestJUnitHasTheFailures(t *testing.T) {
	var many []Failure
	for range mostFailures + 2 {
		many = append(many, Failure{Node: "n", Got: "full"})
	}
	var b strings.Builder
	err := WriteJUnit(&b, []Result{{Test: "p/a.yaml", Snapshot: "s.tar.gz", Release: "v1.24.3", Seconds: 1.5,
		Notes: []string{"a note"}, Expectations: []Outcome{
			{Name: "good", Met: true},
			{Name: "bad", Expected: "<1>", Got: "2", Failures: []Failure{{Pod: "shop/web", Got: "on node a"}}},
		}}, {Test: "b.yaml", Release: "v1.24.3", Expectations: []Outcome{{Name: "many", Failures: many}}}})
	if err != nil {
		t.Fatal(err)
	}
	const want = `<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="pmk-sched test" tests="3" failures="2" time="1.500">
  <testsuite name="p/a.yaml on s.tar.gz at v1.24.3" tests="2" failures="1" errors="0" time="1.500">
    <testcase name="good" classname="p/a.yaml on s.tar.gz at v1.24.3" file="p/a.yaml" time="0"></testcase>
    <testcase name="bad" classname="p/a.yaml on s.tar.gz at v1.24.3" file="p/a.yaml" time="0">
      <failure message="expected &lt;1&gt;, got 2" type="expectation">shop/web: on node a&#xA;</failure>
    </testcase>
    <system-out>a note</system-out>
  </testsuite>
`
	if got, _, _ := strings.Cut(b.String(), "  <testsuite name=\"b.yaml"); got != want {
		t.Errorf("(-want +got):\n%s", cmp.Diff(want, got))
	}
	if text := b.String(); strings.Count(text, "node n: full") != mostFailures || !strings.Contains(text, "and 2 more") {
		t.Errorf("the failures of b.yaml are not the first: %s", text)
	}
}
