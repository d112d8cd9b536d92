package build

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	goversion "go/version"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// Reach classifies the use of a vulnerable module by a program.
type Reach string

// The values of Reach, the closest first. The program calls a vulnerable function, or links its
// package without calling it, or requires its module without linking the package. It is unknown for
// the standard library of a Go version that cannot be analyzed.
const (
	ReachCalled   Reach = "called"
	ReachUnknown  Reach = "unknown"
	ReachImported Reach = "imported"
	ReachRequired Reach = "required"
)

// closeness orders the values of Reach.
var closeness = map[Reach]int{ReachCalled: 3, ReachImported: 2, ReachRequired: 1}

// Vulnerability is a vulnerability database entry that applies to a module of a program.
type Vulnerability struct {
	// ID is the entry, such as GO-2023-2153, and Aliases its other names, such as a CVE.
	ID      string   `json:"id"`
	Aliases []string `json:"aliases,omitempty"`
	Summary string   `json:"summary,omitempty"`
	// Module is the module's path, or stdlib, Version its version in the program, and Fixed the first
	// version without the vulnerability, which may be empty.
	Module  string `json:"module"`
	Version string `json:"version,omitempty"`
	Fixed   string `json:"fixed,omitempty"`
	Reach   Reach  `json:"reach"`
	// Path are the functions from main to the vulnerable one if it is called.
	Path []string `json:"path,omitempty"`
}

// The module of govulncheck, its main package and its version. It is a separate program, because it
// runs the go command and reads only packages for Go versions not newer than its own.
const (
	govulncheck        = "govulncheck"
	govulncheckModule  = "golang.org/x/vuln"
	govulncheckVersion = "v1.9.0"
)

// checkDatabase refuses a database that does not exist, and builds that cannot be checked, before
// minutes are spent on compiling.
func checkDatabase(o Options) error {
	if o.Vulnerabilities == "" {
		return nil
	}
	if o.Source != "" {
		return problem.Invalidf("remove one of the two",
			"--vulnerabilities and --source exclude each other: only a build from modules is checked")
	}
	index := filepath.Join(o.Vulnerabilities, "index", "db.json")
	if _, err := os.Stat(index); err != nil {
		return problem.Invalidf("specify a directory with a copy of the Go vulnerability database: the content of its "+
			"vulndb.zip", "read the vulnerability database: %w", err)
	}
	return nil
}

// checkVulnerabilities adds the kube-scheduler's vulnerabilities to the result of its build.
func (k *releaseBuild) checkVulnerabilities(
	ctx context.Context, r *recipe, result *Result, failed error,
) (*Result, error) {
	if failed != nil || k.options.Vulnerabilities == "" {
		return result, failed
	}
	golang, err := k.goTool.find(ctx)
	if err != nil {
		return nil, err
	}
	// An older go command does not list packages as govulncheck needs it.
	analyzer := golang.version
	if goversion.Compare("go"+r.info.Go, "go"+analyzer) > 0 {
		analyzer = r.info.Go
	}
	e := k.options.Environment
	e.OnStep = nil
	var tool string
	err = k.goTool.step("compile "+govulncheck+" "+govulncheckVersion, func() error {
		built, err := Module(ctx, ModuleOptions{
			Environment: e, Module: govulncheckModule, Version: govulncheckVersion, Go: analyzer,
			Packages: []Program{{Name: govulncheck, Package: govulncheckModule + "/cmd/" + govulncheck}},
		})
		if err == nil {
			tool, err = built.Path(govulncheck)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("check for vulnerabilities: %w", err)
	}
	step := "check kube-scheduler for vulnerabilities"
	err = k.goTool.step(step, func() error {
		result.Vulnerabilities, err = k.findVulnerabilities(ctx, r, step, tool, analyzer)
		return err
	})
	if analyzer != r.info.Go {
		doubtStandardLibrary(result.Vulnerabilities)
	}
	return result, err
}

// doubtStandardLibrary changes the findings in another Go version's standard library: the program's
// own version may call a function where the analyzed one does not.
func doubtStandardLibrary(list []Vulnerability) {
	for i, v := range list {
		if v.Module == "stdlib" && v.Reach != ReachCalled {
			list[i].Reach = ReachUnknown
		}
	}
}

// findVulnerabilities runs govulncheck on the generated module, once for each platform. It reads
// the standard library of the version analyzer, and compares the database entries with the
// compiler's version.
func (k *releaseBuild) findVulnerabilities(
	ctx context.Context, r *recipe, step, tool, analyzer string,
) ([]Vulnerability, error) {
	ready, err := k.compiler.writeModule(ctx, r)
	if err != nil {
		return nil, err
	}
	golang, err := k.goTool.find(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(k.options.Vulnerabilities)
	if err != nil {
		return nil, storage(ctx, step, err)
	}
	database := url.URL{Scheme: "file", Path: filepath.ToSlash(dir)}
	var messages bytes.Buffer
	for _, t := range r.targets {
		variables := []string{
			"GOTOOLCHAIN=go" + analyzer, "GOVERSION=go" + r.info.Go, "GOFLAGS=-mod=" + r.mod, "GOWORK=off",
			"GOOS=" + t.Platform.OS, "GOARCH=" + t.Platform.Arch,
		}
		cmd := golang.in(ready.dir, variables, "-db", database.String(), "-format", "json", "-tags", r.tags,
			t.Program.Package)
		cmd.path = tool
		out, err := k.goTool.run(ctx, cmd)
		if err != nil {
			return nil, failure(ctx, step, out.tail, err)
		}
		messages.Write(out.stdout)
	}
	found, err := readVulnerabilities(&messages)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", step, err)
	}
	return found, nil
}

// message is a message of govulncheck -format json (golang.org/x/vuln/internal/govulncheck). The
// other kinds are not read.
type message struct {
	OSV *struct {
		ID, Summary string
		Aliases     []string
	}
	Finding *struct {
		OSV          string
		FixedVersion string `json:"fixed_version"`
		Trace        []frame
	}
}

type frame struct{ Module, Version, Package, Function, Receiver string }

func (f frame) String() string {
	name := f.Function
	if f.Receiver != "" {
		name = strings.TrimPrefix(f.Receiver, "*") + "." + name
	}
	return f.Package + "." + name
}

// readVulnerabilities returns the closest finding for each entry and module, sorted.
func readVulnerabilities(r io.Reader) ([]Vulnerability, error) {
	entries := map[string]Vulnerability{}
	found := map[[2]string]Vulnerability{}
	decoder := json.NewDecoder(r)
	for {
		var m message
		if err := decoder.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("parse the output of %s: %w", govulncheck, err)
		}
		if m.OSV != nil {
			entries[m.OSV.ID] = Vulnerability{Aliases: m.OSV.Aliases, Summary: m.OSV.Summary}
		}
		if m.Finding == nil || len(m.Finding.Trace) == 0 {
			continue
		}
		v := describeFinding(m.Finding.OSV, m.Finding.FixedVersion, m.Finding.Trace)
		key := [2]string{v.ID, v.Module}
		if known, exists := found[key]; !exists || closeness[v.Reach] > closeness[known.Reach] {
			found[key] = v
		}
	}
	list := []Vulnerability{}
	for _, v := range slices.Collect(maps.Values(found)) {
		v.Aliases, v.Summary = entries[v.ID].Aliases, entries[v.ID].Summary
		list = append(list, v)
	}
	slices.SortFunc(list, func(a, b Vulnerability) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Module, b.Module))
	})
	return list, nil
}

// describeFinding returns a finding by its trace, which begins with the vulnerable function,
// package or module.
func describeFinding(id, fixed string, trace []frame) Vulnerability {
	at := trace[0]
	v := Vulnerability{ID: id, Module: at.Module, Version: at.Version, Fixed: fixed, Reach: ReachRequired}
	switch {
	case at.Function != "":
		v.Reach = ReachCalled
		for _, f := range slices.Backward(trace) {
			v.Path = append(v.Path, f.String())
		}
	case at.Package != "":
		v.Reach = ReachImported
	}
	return v
}
