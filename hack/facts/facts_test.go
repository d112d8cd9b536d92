package main

import (
	"bytes"
	"go/ast"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/versions"
)

// sourceOf returns a source with one module, from the texts of its files.
func sourceOf(t *testing.T, minor int, files map[string]string) *source {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &source{
		release: versions.Release{Major: 1, Minor: minor}, dirs: map[string]string{kubernetes: dir},
		parsed: map[string]*ast.File{},
	}
}

const gateSource = `package features

import other "k8s.io/kubernetes/pkg/other"

const (
	A featuregate.Feature = "Renamed"
	B featuregate.Feature = "B"
	yes = true
)

var plain = map[featuregate.Feature]featuregate.FeatureSpec{
	A:       {Default: yes, PreRelease: featuregate.Beta},
	other.C: {Default: false, LockToDefault: true, PreRelease: featuregate.Deprecated},
}

var versioned = map[featuregate.Feature]featuregate.VersionedSpecs{
	B: {
		{Version: version.MustParse("1.30"), Default: false, PreRelease: featuregate.Alpha},
		{Version: version.MustParse("1.33"), Default: true, PreRelease: featuregate.GA, LockToDefault: true},
		{Version: version.MajorMinor(1, 40), Default: false, PreRelease: featuregate.Deprecated},
	},
	missing.D: {{Version: version.MustParse("1.35"), Default: true, PreRelease: featuregate.Beta}},
}

var dependencies = map[featuregate.Feature][]featuregate.Feature{A: {B}, B: {}}
`

func TestGatesAreReadFromBothForms(t *testing.T) {
	files := map[string]string{"pkg/features/features.go": gateSource,
		"pkg/other/other.go": "package other\n\nconst C featuregate.Feature = \"C\"\n"}
	for minor, want := range map[int]string{
		32: "B 32:off C 32:locked-off Renamed 32:on",
		37: "B 37:locked-on C 37:locked-off D 37:on Renamed 37:on",
	} {
		written := strings.TrimPrefix(writeGates([]*source{sourceOf(t, minor, files)}), gatesHead)
		if got := strings.Join(strings.Fields(written), " "); got != want {
			t.Errorf("1.%d: got %q, want %q", minor, got, want)
		}
	}
}

func TestTablesForARelease(t *testing.T) {
	for _, tc := range []struct {
		release versions.Release
		asOf    string
		want    string
	}{
		{versions.Release{Major: 1, Minor: 36, Patch: 3}, "", "1.36"},
		{versions.Release{Major: 1, Minor: 99}, "", versions.Newest()},
		{versions.Release{Major: 1, Minor: 37, Patch: 1}, "1.36", "1.36"},
		{versions.Release{Major: 1, Minor: 35}, "v1.36", "1.35"},
		{versions.Release{Major: 1, Minor: 37}, "1.99", ""},
		{versions.Release{Major: 1, Minor: 37}, "newest", ""},
	} {
		got, err := tablesFor(tc.release, tc.asOf)
		if tc.want == "" != problem.IsInvalid(err) || err == nil && got.MinorString() != tc.want {
			t.Errorf("%s as of %q: got %s, %v; want %q", tc.release, tc.asOf, got, err, tc.want)
		}
	}
}

func TestUsageErrors(t *testing.T) {
	for _, args := range [][]string{nil, {"v1.37.1", "v1.36.3"}, {"1.x"}, {"--no-such-flag"}} {
		if err := run(t.Context(), args, &bytes.Buffer{}); !problem.IsInvalid(err) {
			t.Errorf("facts %q: %v, want a usage error", args, err)
		}
	}
}

func TestDifferencesArePrintedWithTheFileToChange(t *testing.T) {
	c := &comparison{source: sourceOf(t, 38, nil)}
	c.begin("equal", "none.go")
	c.differLists("plugin", []string{"A", "B"}, []string{"B", "A"})
	c.note("a fact")
	c.begin("plugins", "versions/names.go")
	c.differLists("plugin", []string{"A", "B"}, []string{"B", "C"})
	c.differValues("the port", 1, 2)
	want := `v1.38.0, compared with the rows of 1.37
ok      equal
        note: a fact
DIFFERS plugins: versions/names.go
        add from 1.38 on: plugin C
        end before 1.38: plugin A
        from 1.38 on: the port is 2, the table has 1
1 of 2 tables differ
`
	if diff := cmp.Diff(want, printed(c.tables, c.source.release, versions.Release{Major: 1, Minor: 37})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
