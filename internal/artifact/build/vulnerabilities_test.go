package build

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// vulnerabilityDatabase returns the directory of a database with made-up entries.
func vulnerabilityDatabase(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, file := range readArchive(t, "vulnerabilities.txtar").Files {
		write(t, filepath.Join(dir, file.Name), string(file.Data))
	}
	return dir
}

// fakeGovulncheck prints what the real one prints for the fake release, and its arguments and its
// versions of Go.
const fakeGovulncheck = `package main

import (
	"fmt"
	"os"
)

func main() {
	for _, name := range []string{"cmd/kube-scheduler/main.go", "go.mod"} {
		if _, err := os.Stat(name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if os.Args[1] != "-db" || os.Args[2][:8] != "file:///" || os.Getenv("GOFLAGS") != "-mod=mod" {
		fmt.Fprintln(os.Stderr, os.Args, os.Getenv("GOFLAGS"))
		os.Exit(2)
	}
	fmt.Printf(` + "`" + `{"progress":{"message":"ignored"}}
{"osv":{"id":"GO-2026-0001","summary":%q,"aliases":["CVE-2026-0001"]}}
{"osv":{"id":"GO-2026-0002","summary":"imported"}}
{"finding":{"osv":"GO-2026-0001","trace":[{"module":"m","version":"v1.0.0"}]}}
{"finding":{"osv":"GO-2026-0001","fixed_version":"v1.1.0","trace":[
	{"module":"m","version":"v1.0.0","package":"m/p","function":"Bad","receiver":"*T"},
	{"module":"main","package":"x/cmd","function":"main"}]}}
{"finding":{"osv":"GO-2026-0001","trace":[{"module":"m","version":"v1.0.0","package":"m/p"}]}}
{"finding":{"osv":"GO-2026-0002","trace":[{"module":"m","version":"v1.0.0","package":"m/p"}]}}
{"finding":{"osv":"GO-2026-0002","trace":[{"module":"m","version":"v1.0.0"}]}}
` + "`" + `, os.Getenv("GOVERSION")+" "+os.Getenv("GOTOOLCHAIN"))
}
`

func TestVulnerabilitiesAreReportedByTheirClosestFinding(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	p.release(t, testRelease, nil)
	p.add(t, govulncheckModule, govulncheckVersion, map[string]string{
		"go.mod": "module " + govulncheckModule + "\n\ngo 1.24.0\n", "cmd/govulncheck/main.go": fakeGovulncheck,
	})
	o := p.options(t)
	o.Vulnerabilities = vulnerabilityDatabase(t)
	want := []Vulnerability{
		{ID: "GO-2026-0001", Aliases: []string{"CVE-2026-0001"}, Summary: "go" + localGo() + " go" + localGo(), Module: "m",
			Version: "v1.0.0", Fixed: "v1.1.0", Reach: ReachCalled, Path: []string{"x/cmd.main", "m/p.T.Bad"}},
		{ID: "GO-2026-0002", Summary: "imported", Module: "m", Version: "v1.0.0", Reach: ReachImported},
	}

	for _, cached := range []bool{false, true} {
		result := mustRun(t, o)
		if diff := cmp.Diff(want, result.Vulnerabilities); diff != "" || result.Cached != cached {
			t.Errorf("cached %v, vulnerabilities (-want +got):\n%s", result.Cached, diff)
		}
	}
	mustBeEmpty(t, newCache(o.CacheDir).temporary())
}

func TestVulnerabilityDatabaseIsCheckedBeforeTheBuild(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	o := p.options(t)
	o.Vulnerabilities = t.TempDir()
	if err := mustRefuse(t, o); !strings.Contains(err.Error(), "db.json") {
		t.Errorf("got %v", err)
	}
	o.Vulnerabilities, o.Source = vulnerabilityDatabase(t), "git:/nowhere"
	if err := mustRefuse(t, o); !strings.Contains(err.Error(), "--source") {
		t.Errorf("got %v", err)
	}
}

func TestOutputOfGovulncheckThatIsCutIsRefused(t *testing.T) {
	for _, text := range []string{`{"finding":{"osv":"GO-1","tra`, "no JSON"} {
		if _, err := readVulnerabilities(strings.NewReader(text)); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
	if list, err := readVulnerabilities(strings.NewReader("")); err != nil || list == nil || len(list) != 0 {
		t.Errorf("no output: got %v, %v", list, err)
	}
}

func TestStandardLibraryOfAnotherGoIsNotReportedAsUnreachable(t *testing.T) {
	list := []Vulnerability{{Module: "stdlib", Reach: ReachCalled}, {Module: "stdlib", Reach: ReachImported},
		{Module: "stdlib", Reach: ReachRequired}, {Module: "m", Reach: ReachImported}}
	doubtStandardLibrary(list)
	for i, want := range []Reach{ReachCalled, ReachUnknown, ReachUnknown, ReachImported} {
		if list[i].Reach != want {
			t.Errorf("finding %d: got %s, want %s", i, list[i].Reach, want)
		}
	}
}
