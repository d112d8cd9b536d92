package build

import (
	"cmp"
	"debug/buildinfo"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
)

// Binary is one compiled program.
type Binary struct {
	Program  string   `json:"program"`
	Platform Platform `json:"platform"`
	// Path is the path in the build cache. Copy the file, never change it.
	Path string `json:"-"`
	// Size is in bytes, SHA256 in lower-case hexadecimal.
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	// Inputs is the hash of everything that decided these bytes.
	Inputs string `json:"inputs"`
}

// ModuleVersion is a module at a version.
type ModuleVersion struct {
	Path    string `json:"path"`
	Version string `json:"version"`
}

// Info describes a build and its inputs. It has no data about the machine or directory of the
// build.
type Info struct {
	// Release is the Kubernetes release ("v1.24.3"), or the version of another module.
	Release string `json:"release"`
	// Asked is the requested release if Release, another patch of its minor, was built instead.
	Asked string `json:"asked,omitempty"`
	// Go is the compiler's version, such as "1.18.10". GoNamed is the version that the release names.
	// They differ only with a warning, or if another version was requested.
	Go      string `json:"go"`
	GoNamed string `json:"goNamed,omitempty"`
	// GoChosen reports whether Options.Go chose the version. The generated module then differs, also
	// if Go and GoNamed are equal.
	GoChosen bool `json:"goChosen,omitempty"`
	// Updated are modules with newer versions than the release has, because its own do not work with
	// Go.
	Updated []ModuleVersion `json:"updated,omitempty"`
	// GoDirective is the go line of the generated go.mod.
	GoDirective string `json:"goDirective,omitempty"`
	// Module is the programs' module, with its version.
	Module string `json:"module"`
	// Plugins are the compiled-in plugins that are not in-tree, and Imports the other imported
	// packages.
	Plugins []plugins.Info `json:"plugins,omitempty"`
	Imports []string       `json:"imports,omitempty"`
	// Source is "modules", or "git:…" without a password.
	Source string `json:"source"`
	// Commit is the commit that was built. It is empty when built from modules.
	Commit string `json:"commit,omitempty"`
	// Date is when the release was published (RFC 3339, UTC), which is the binaries' build date.
	Date string `json:"date,omitempty"`
	// Modules are the modules that are linked into the binaries, sorted by path.
	Modules []ModuleVersion `json:"modules,omitempty"`
	// Inputs is the hash over the inputs of all binaries.
	Inputs string `json:"inputs"`
	// Warnings are the deviations from the release.
	Warnings []string `json:"warnings,omitempty"`
}

// Result is a finished build.
type Result struct {
	Info     Info
	Binaries []Binary
	// Cached reports whether all binaries were in the cache.
	Cached bool
	// Vulnerabilities are the entries in Options.Vulnerabilities that apply to the kube-scheduler's
	// modules, sorted by ID. It is nil if nothing was checked.
	Vulnerabilities []Vulnerability
	// Dir is the generated module's directory if it was kept.
	Dir string
	// Recipe describes the build. The caller sets it before Tag, and FindByImage returns it.
	Recipe v1alpha1.Recipe
}

// Binary returns the binary of a program for a platform, and whether it exists.
func (r *Result) Binary(program string, p Platform) (Binary, bool) {
	for _, b := range r.Binaries {
		if b.Program == program && b.Platform == p {
			return b, true
		}
	}
	return Binary{}, false
}

// Path returns the path of a program for this machine.
func (r *Result) Path(program string) (string, error) {
	binary, ok := r.Binary(program, Host())
	if !ok {
		return "", fmt.Errorf("build %s %s: no binary for %s", program, r.Info.Release, Host())
	}
	return binary.Path, nil
}

// newResult returns the result of a recipe, without binaries.
func newResult(r *recipe) *Result {
	result := &Result{Info: r.info, Cached: true}
	result.Info.Inputs = combined(r.targets)
	return result
}

func (r *Result) add(s stored) {
	r.Binaries = append(r.Binaries, s.Binary)
	r.Info.addModules(s.Info.Modules)
}

// addModules merges the modules of one more binary.
func (i *Info) addModules(more []ModuleVersion) {
	i.Modules = append(slices.Clone(i.Modules), more...)
	slices.SortFunc(i.Modules, func(a, b ModuleVersion) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Version, b.Version))
	})
	i.Modules = slices.Compact(i.Modules)
}

// ModuleSum is a module that is linked into a binary, with its sum as in a go.sum file ("h1:…"),
// which is empty for a directory.
type ModuleSum struct {
	ModuleVersion
	Sum string
}

// ModuleSums returns the modules that are linked into a binary, sorted by path.
func ModuleSums(path string) ([]ModuleSum, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return LinkedModules(info), nil
}

// LinkedModules returns the modules that the linker recorded in a program, sorted by path.
func LinkedModules(info *debug.BuildInfo) []ModuleSum {
	var linked []ModuleSum
	for _, dep := range info.Deps {
		m := ModuleSum{ModuleVersion{Path: dep.Path, Version: dep.Version}, dep.Sum}
		if dep.Replace != nil {
			m.Sum = dep.Replace.Sum
			if dep.Replace.Version != "" {
				m.Version = dep.Replace.Version
			}
		}
		linked = append(linked, m)
	}
	slices.SortFunc(linked, func(a, b ModuleSum) int { return cmp.Compare(a.Path, b.Path) })
	return linked
}
