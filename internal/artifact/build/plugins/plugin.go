// Package plugins finds, describes and checks the scheduler plugins that are compiled into a
// program, and generates the files that they add to its module.
//
// Plugins are read as source and never type-checked: everything that would fail later (a signature
// of another release, a duplicate name, a missing constant) is refused before a compiler runs.
package plugins

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"golang.org/x/mod/module"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// Plugin names a package to compile in: a bundled plugin, a directory, or a package of a module at
// a version.
type Plugin struct {
	// Builtin is the directory of a bundled plugin below scheduler/plugins, such as "loadaware". Name
	// is the name by which it is registered. If it is empty, it is the plugin's constant Name.
	Builtin, Name string
	// Dir is a package's directory. Its module is the module that contains the directory.
	Dir string
	// Module and Version name a module exactly. Package is the import path in it. If it is empty, it
	// is the package at the module's root.
	Module, Version, Package string
}

// builtinPrefix marks a bundled plugin on the command line.
const builtinPrefix = "builtin:"

// Parse reads a plugin as a user writes it: builtin:NAME, or builtin:NAME=OTHER to register it by
// another name, a directory that begins with "./", "../" or "/", or module@version[:package], where
// the package is an import path or its part below the module. The error is Invalid.
func Parse(text string) (Plugin, error) {
	if builtin, found := strings.CutPrefix(text, builtinPrefix); found {
		builtin, name, renamed := strings.Cut(builtin, "=")
		p := Plugin{Builtin: builtin, Name: name}
		if renamed && name == "" {
			return p, p.invalidf("write it as builtin:coscheduling=Gangs", "the name is empty")
		}
		return p, p.check()
	}
	if text == "." || text == ".." || strings.HasPrefix(text, "./") || strings.HasPrefix(text, "../") ||
		strings.HasPrefix(text, "/") {
		return Plugin{Dir: text}, nil
	}
	modulePath, rest, found := strings.Cut(text, "@")
	if !found {
		hint := "a directory begins with ./ : ./" + text
		if _, address, isURL := strings.Cut(text, "://"); isURL {
			hint = "a plugin of a repository is a Go module at a version: " + strings.TrimSuffix(address, ".git") + "@VERSION"
		}
		return Plugin{}, problem.Invalidf(hint,
			"invalid plugin %q: must be builtin:NAME, a directory or module@version", text)
	}
	version, pkg, _ := strings.Cut(rest, ":")
	p := Plugin{Module: modulePath, Version: version, Package: pkg}
	if pkg != "" && pkg != modulePath && !strings.HasPrefix(pkg, modulePath+"/") {
		p.Package = path.Join(modulePath, pkg)
	}
	return p, p.check()
}

// pluginName matches names that configurations, metrics and Go have no problem with.
var pluginName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{0,62}$`)

// check refuses values that cannot name a plugin.
func (p Plugin) check() error {
	given := 0
	for _, one := range []string{p.Builtin, p.Dir, p.Module} {
		if one != "" {
			given++
		}
	}
	switch {
	case given != 1:
		return problem.Invalidf("", "invalid plugin %q: must be one of builtin:NAME, a directory and module@version", p)
	case p.Builtin != "" && strings.ContainsAny(p.Builtin, `/\.`):
		return problem.Invalidf("", "invalid plugin %q: the name of a bundled plugin has no slash or dot", p)
	case p.Name != "" && p.Builtin == "":
		return problem.Invalidf("change the constant Name of the plugin", "plugin %s: only bundled plugins can be renamed", p)
	case p.Name != "" && !pluginName.MatchString(p.Name):
		return problem.Invalidf("use letters and digits, and begin with a letter", "invalid name %q of plugin %s", p.Name, p)
	case p.Module == "":
		return nil
	}
	if err := module.Check(p.Module, p.Version); err != nil || module.CanonicalVersion(p.Version) != p.Version {
		return problem.Invalidf(
			"write it as sigs.k8s.io/scheduler-plugins@v0.32.7:pkg/coscheduling; latest and branches are not exact versions",
			"invalid plugin %q: must have the path of a module and an exact version", p)
	}
	if p.Package != "" && p.Package != p.Module && !strings.HasPrefix(p.Package, p.Module+"/") {
		return problem.Invalidf("", "invalid plugin %q: package %s is not in module %s", p, p.Package, p.Module)
	}
	return nil
}

// invalidf returns an error about a plugin's source, which the user can fix.
func (p Plugin) invalidf(hint, format string, args ...any) error {
	return problem.Invalidf(hint, "plugin %s: %w", p, fmt.Errorf(format, args...))
}

// String returns the plugin as a user writes it.
func (p Plugin) String() string {
	switch {
	case p.Builtin != "":
		if p.Name != "" {
			return builtinPrefix + p.Builtin + "=" + p.Name
		}
		return builtinPrefix + p.Builtin
	case p.Dir != "":
		return p.Dir
	case p.Package != "" && p.Package != p.Module:
		return p.Module + "@" + p.Version + ":" + strings.TrimPrefix(p.Package, p.Module+"/")
	case p.Module != "":
		return p.Module + "@" + p.Version
	}
	return ""
}

// Kinds of plugins.
const (
	// KindPortable plugins are written against package scheduler of this module and compile for
	// every supported release.
	KindPortable = "portable"
	// KindNative plugins are written against the scheduling framework of some releases and compile
	// only for those.
	KindNative = "native"
)

// Info describes a plugin from its source.
type Info struct {
	// Name is its constant Name, which a scheduler configuration uses.
	Name string `json:"name"`
	// Kind is KindPortable or KindNative.
	Kind string `json:"kind"`
	// Package is its import path. Origin is its source: "builtin:blockall",
	// "example.com/plugins@v1.2.0", or "dir" with the module's path, so that no local path gets into a
	// build record.
	Package string `json:"package"`
	Origin  string `json:"origin"`
	// Points are its extension points by their names in a configuration, such as filter and score,
	// in the framework's order.
	Points []string `json:"points"`
	// Signs reports whether the plugin declares the part of a pod that its results depend on: Sign, or
	// SignPod for a native plugin. Without it, pods with its profile are not batched.
	Signs bool `json:"signs,omitempty"`
	// Rules reports whether the package has a function Rules, which returns the RBAC rules that the
	// plugin needs.
	Rules bool `json:"rules,omitempty"`
	// SHA256 is the lower-case hexadecimal hash of its module's sources and the directories that its
	// go.mod replaces modules with.
	SHA256 string `json:"sha256,omitempty"`
}
