package plugins

import (
	"slices"
	"strings"

	"golang.org/x/mod/module"

	"github.com/pmk-sched/pmk-sched/versions"
)

// Set is one program's plugins, with their sources. The zero value and nil have no plugins.
type Set struct {
	// plugins are sorted by package and modules by path, so the order on the command line does not
	// change the binary.
	plugins []resolved
	modules []*pluginModule
	// api contains the sources of package scheduler and the bundled plugins. It is nil unless a plugin
	// needs them.
	api     *pluginModule
	imports []string
	release versions.Release
}

// resolved is a plugin whose sources were read.
type resolved struct {
	info  Info
	given Plugin
	// composition selects the adapter's structs for a portable plugin.
	composition Composition
}

// Target describes the module that plugins are compiled into.
type Target struct {
	// GoDirective is its go line and Go the compiler's version.
	GoDirective, Go string
	// Versions are the versions that the target fixes, by module path.
	Versions map[string]string
	// Required are the modules that the target's own go.mod requires. Replaced are the modules that
	// the generated module replaces regardless of plugins.
	Required []module.Version
	Replaced []string
	// Staging are a Kubernetes release's staging modules.
	Staging []string
}

const kubernetes = "k8s.io/kubernetes"

// Empty reports whether there is nothing to compile in.
func (s *Set) Empty() bool { return s == nil || len(s.plugins) == 0 && len(s.imports) == 0 }

// Imports returns the packages that are imported for their side effects.
func (s *Set) Imports() []string { return s.imports }

// Infos describes the plugins, sorted by package.
func (s *Set) Infos() []Info {
	var all []Info
	for _, p := range s.plugins {
		all = append(all, p.info)
	}
	return all
}

// InfosOf describes the given plugins, in their order.
func (s *Set) InfosOf(given []Plugin) []Info {
	var all []Info
	for _, want := range given {
		i := slices.IndexFunc(s.plugins, func(p resolved) bool { return p.given == want })
		all = append(all, s.plugins[i].info)
	}
	return all
}

// Sums returns the go.sum lines of the plugins' modules.
func (s *Set) Sums() string {
	var sums strings.Builder
	for _, m := range s.modules {
		sums.WriteString(m.sums)
	}
	return sums.String()
}
