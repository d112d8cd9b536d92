package spec

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// pluginEntry is one element of spec.source.plugins.
type pluginEntry struct {
	Builtin string `yaml:"builtin"`
	Module  string `yaml:"module"`
	Package string `yaml:"package"`
	Path    string `yaml:"path"`
	// Weight, Args and Enable are its place in the configuration.
	Weight int       `yaml:"weight"`
	Args   yaml.Node `yaml:"args"`
	Enable *[]string `yaml:"enable"`
}

// plugins returns the plugins of the flags, or those of the document. A plugin that both name keeps the document's weight,
// arguments and extension points.
func (d *document) plugins(flags []string) ([]pack.Plugin, error) {
	inFile, err := d.filePlugins()
	if err != nil || len(flags) == 0 {
		return inFile, err
	}
	var all []pack.Plugin
	for _, text := range flags {
		p, err := plugins.Parse(text)
		if err != nil {
			return nil, err
		}
		plugin := pack.Plugin{Plugin: p}
		if i := slices.IndexFunc(inFile, func(known pack.Plugin) bool { return samePlugin(known.Plugin, p) }); i >= 0 {
			plugin = inFile[i]
			plugin.Plugin = p
		}
		all = append(all, plugin)
	}
	return all, nil
}

// filePlugins returns spec.source.plugins.
func (d *document) filePlugins() ([]pack.Plugin, error) {
	var all []pack.Plugin
	for i, entry := range d.Spec.Source.Plugins {
		source, err := entry.source(d)
		if err != nil {
			return nil, fmt.Errorf("spec.source.plugins[%d]: %w", i, err)
		}
		plugin := pack.Plugin{Plugin: source, Weight: entry.Weight}
		if entry.Enable != nil {
			plugin.Enable = append([]string{}, *entry.Enable...)
		}
		if !entry.Args.IsZero() {
			if plugin.Args, err = yaml.Marshal(&entry.Args); err != nil {
				return nil, fmt.Errorf("write the args of spec.source.plugins[%d]: %w", i, err)
			}
		}
		all = append(all, plugin)
	}
	return all, nil
}

// source returns where the plugin's code is.
func (e pluginEntry) source(d *document) (plugins.Plugin, error) {
	var given []string
	for _, field := range []struct{ name, value string }{{"builtin", e.Builtin}, {"module", e.Module}, {"path", e.Path}} {
		if field.value != "" {
			given = append(given, field.name)
		}
	}
	switch {
	case len(given) == 0:
		return plugins.Plugin{}, problem.Invalidf("", "one of builtin, module and path is required")
	case len(given) > 1:
		return plugins.Plugin{}, problem.Invalidf("", "%s exclude each other", strings.Join(given, " and "))
	case e.Package != "" && e.Module == "":
		return plugins.Plugin{}, problem.Invalidf("set path to the package's own directory", "package is valid with module only")
	case e.Path != "":
		return plugins.Plugin{Dir: d.path(e.Path)}, nil
	case e.Builtin != "":
		return plugins.Parse("builtin:" + e.Builtin)
	}
	text := e.Module
	if e.Package != "" {
		text += ":" + e.Package
	}
	if !strings.Contains(text, "@") {
		return plugins.Plugin{}, problem.Invalidf("write it as sigs.k8s.io/scheduler-plugins@v0.32.7", "module %s has no version", e.Module)
	}
	return plugins.Parse(text)
}

// sources returns the plugins as the build takes them.
func sources(list []pack.Plugin) []plugins.Plugin {
	var all []plugins.Plugin
	for _, p := range list {
		all = append(all, p.Plugin)
	}
	return all
}

// samePlugin compares a flag with an entry of the document.
func samePlugin(a, b plugins.Plugin) bool {
	a.Dir, b.Dir = absolute(a.Dir), absolute(b.Dir)
	return a == b
}

func absolute(dir string) string {
	if dir == "" {
		return ""
	}
	if full, err := filepath.Abs(dir); err == nil {
		return full
	}
	return dir
}

// pluginFlags returns the flags that name plugins and imports, valid in any directory.
func pluginFlags(with, imports []string) []string {
	var flags []string
	for _, text := range with {
		if p, err := plugins.Parse(text); err == nil && p.Dir != "" {
			text = absolute(p.Dir)
		}
		flags = append(flags, "--with="+text)
	}
	for _, imported := range imports {
		flags = append(flags, "--import="+imported)
	}
	return flags
}
