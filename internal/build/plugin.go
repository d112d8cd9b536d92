package build

import (
	"fmt"
	"path"
	"strings"

	"golang.org/x/mod/module"
)

// Plugin names a package to compile into the kube-scheduler: one of this
// program's own, one in a folder, or one of a module at a version.
type Plugin struct {
	// Builtin is the folder of a shipped plugin below scheduler/plugins of
	// Options.Sources, such as "loadaware".
	Builtin string
	// Dir is the folder of a package; its module is the one that holds it.
	Dir string
	// Module and Version name a module exactly; Package is the import path in
	// it, empty for the package at its top.
	Module, Version, Package string
}

// builtinPrefix marks a shipped plugin in what a person types.
const builtinPrefix = "builtin:"

// ParsePlugin reads a plugin as a person types it: builtin:NAME, a folder that
// begins with "./", "../" or "/", or module@version[:package], where the package
// is an import path, or its part below the module. The error is Invalid.
func ParsePlugin(text string) (Plugin, error) {
	if name, found := strings.CutPrefix(text, builtinPrefix); found {
		return Plugin{Builtin: name}, Plugin{Builtin: name}.check()
	}
	if text == "." || text == ".." || strings.HasPrefix(text, "./") || strings.HasPrefix(text, "../") || strings.HasPrefix(text, "/") {
		return Plugin{Dir: text}, nil
	}
	modulePath, rest, found := strings.Cut(text, "@")
	if !found {
		return Plugin{}, wrongPlugin(text, "it is neither builtin:NAME nor a folder nor module@version", "a folder begins with ./ : ./"+text)
	}
	version, pkg, _ := strings.Cut(rest, ":")
	p := Plugin{Module: modulePath, Version: version, Package: pkg}
	if pkg != "" && pkg != modulePath && !strings.HasPrefix(pkg, modulePath+"/") {
		p.Package = path.Join(modulePath, pkg)
	}
	return p, p.check()
}

// check refuses what cannot name a plugin.
func (p Plugin) check() error {
	given := 0
	for _, one := range []string{p.Builtin, p.Dir, p.Module} {
		if one != "" {
			given++
		}
	}
	switch {
	case given != 1:
		return wrongPlugin(p.String(), "it is to be one of builtin:NAME, a folder, and module@version", "")
	case p.Builtin != "" && strings.ContainsAny(p.Builtin, `/\.`):
		return wrongPlugin(p.String(), "a shipped plugin has a plain name", "")
	case p.Module == "":
		return nil
	}
	if err := module.Check(p.Module, p.Version); err != nil || module.CanonicalVersion(p.Version) != p.Version {
		return wrongPlugin(p.String(), "it needs the module's path and its exact version",
			"write it as sigs.k8s.io/scheduler-plugins@v0.32.7:pkg/coscheduling; latest and branches are not exact")
	}
	if p.Package != "" && p.Package != p.Module && !strings.HasPrefix(p.Package, p.Module+"/") {
		return wrongPlugin(p.String(), fmt.Sprintf("package %s is not one of module %s", p.Package, p.Module), "")
	}
	return nil
}

func wrongPlugin(text, problem, try string) *Error {
	return &Error{Step: fmt.Sprintf("read plugin %q", text), Cause: CauseInput, Message: problem, Try: try}
}

// String returns the plugin as a person types it.
func (p Plugin) String() string {
	switch {
	case p.Builtin != "":
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
	// KindPortable plugins are written against package scheduler of this module
	// and compiled for any release.
	KindPortable = "portable"
	// KindNative plugins are written against the scheduling framework of some
	// releases, and fit no other.
	KindNative = "native"
)

// PluginInfo is what is known of a plugin from its source.
type PluginInfo struct {
	// Name is its constant Name: what a scheduler configuration calls it.
	Name string `json:"name"`
	// Kind is KindPortable or KindNative.
	Kind string `json:"kind"`
	// Package is its import path, and Origin where it came from:
	// "builtin:blockall", "example.com/plugins@v1.2.0", or "dir" with the module's
	// path for a folder, whose place is nobody's business.
	Package string `json:"package"`
	Origin  string `json:"origin"`
	// Points are its extension points by the names of a configuration, such as
	// filter and score, in the framework's order.
	Points []string `json:"points"`
	// Rules says that the package has a function Rules, which tells what the
	// plugin needs of the API server.
	Rules bool `json:"rules,omitempty"`
}
