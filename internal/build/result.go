package build

import (
	"cmp"
	"slices"

	"github.com/pmk-sched/pmk-sched/internal/build/plugins"
)

// Binary is one compiled program.
type Binary struct {
	Program  string   `json:"program"`
	Platform Platform `json:"platform"`
	// Path is where the binary lies in the cache. Copy it, never change it.
	Path string `json:"-"`
	// Size is in bytes, SHA256 in lower-case hexadecimal.
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	// Inputs is the hash of everything that decided these bytes.
	Inputs string `json:"inputs"`
}

// ModuleVersion is a module that is really linked into a binary.
type ModuleVersion struct {
	Path    string `json:"path"`
	Version string `json:"version"`
}

// Info says what was built and from what. It holds nothing of the machine or
// folder in which it was built.
type Info struct {
	// Release is the Kubernetes release ("v1.24.3"), or the version of an
	// ordinary module.
	Release string `json:"release"`
	// Asked is the release that was asked for where Release, another patch of
	// its minor, was taken instead.
	Asked string `json:"asked,omitempty"`
	// Go is the version of the compiler, such as "1.18.10"; GoNamed the one
	// that the release names. They differ only with a warning.
	Go      string `json:"go"`
	GoNamed string `json:"goNamed,omitempty"`
	// GoDirective is the line go of the generated module's go.mod.
	GoDirective string `json:"goDirective,omitempty"`
	// Module is the module the programs come from, with its version.
	Module string `json:"module"`
	// Plugins are those compiled in beside the release's own, and Imports the
	// packages imported besides.
	Plugins []plugins.Info `json:"plugins,omitempty"`
	Imports []string       `json:"imports,omitempty"`
	// Source is "modules", or "git:…" as it was given, without a password.
	Source string `json:"source"`
	// Commit is the commit that was built; empty when built from modules.
	Commit string `json:"commit,omitempty"`
	// Date is when the release was made (RFC 3339, UTC), which the binaries
	// give as their build date.
	Date string `json:"date,omitempty"`
	// Modules lists what is linked into the binaries, sorted by path.
	Modules []ModuleVersion `json:"modules,omitempty"`
	// Inputs is the hash over the inputs of all binaries.
	Inputs string `json:"inputs"`
	// Warnings says what is not quite as the release wants it.
	Warnings []string `json:"warnings,omitempty"`
}

// Result is what a build made, or found made already.
type Result struct {
	Info     Info
	Binaries []Binary
	// Cached says that no binary had to be compiled.
	Cached bool
	// Dir is where the generated module was kept, if it was to be.
	Dir string
	// Flags are what a person would give to have the same plugins compiled in
	// again. Whoever knows them sets them before Tag; FindByImage returns them.
	Flags []string
}

// Binary returns the binary of a program for a platform, and whether there is one.
func (r *Result) Binary(program string, p Platform) (Binary, bool) {
	for _, b := range r.Binaries {
		if b.Program == program && b.Platform == p {
			return b, true
		}
	}
	return Binary{}, false
}

// addModules merges the modules of one more binary.
func (i *Info) addModules(more []ModuleVersion) {
	i.Modules = append(slices.Clone(i.Modules), more...)
	slices.SortFunc(i.Modules, func(a, b ModuleVersion) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Version, b.Version))
	})
	i.Modules = slices.Compact(i.Modules)
}
