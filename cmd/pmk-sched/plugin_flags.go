package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"go.yaml.in/yaml/v3"

	pmksched "github.com/pmk-sched/pmk-sched"
	"github.com/pmk-sched/pmk-sched/internal/build/plugins"
	"github.com/pmk-sched/pmk-sched/profiles"
)

// pluginEntry is one element of spec.source.plugins.
type pluginEntry struct {
	Builtin string `yaml:"builtin"`
	Module  string `yaml:"module"`
	Package string `yaml:"package"`
	Path    string `yaml:"path"`
	// Weight, Args and Enable are how it stands in the configuration.
	Weight int       `yaml:"weight"`
	Args   yaml.Node `yaml:"args"`
	Enable *[]string `yaml:"enable"`
}

// chosenPlugin is a plugin with what the file says of its configuration.
type chosenPlugin struct {
	plugins.Plugin
	entry pluginEntry
}

// chosen is what to compile in: plugins, and packages imported besides.
type chosen struct {
	plugins []chosenPlugin
	imports []string
}

func pluginFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "with", Usage: "`PLUGIN` to compile in: builtin:NAME, ./FOLDER, or MODULE@VERSION[:PACKAGE]; can be repeated"},
		&cli.StringSliceFlag{Name: "import", Usage: "`PACKAGE` to import for what it registers, such as the scheme of a plugin's arguments; can be repeated"},
	}
}

// withFlag is --with on commands that describe a scheduler: it says what is in an
// image that was built elsewhere.
func withFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "with", Usage: "`PLUGIN` that the image was built with, if it was not built here; can be repeated"}
}

// readChosen takes plugins from flags, else from the file. A plugin that both
// name keeps what the file says of its configuration.
func readChosen(c *cli.Context, f *customScheduler) (chosen, error) {
	inFile, err := f.plugins()
	if err != nil {
		return chosen{}, err
	}
	all := chosen{plugins: inFile, imports: firstList(c.StringSlice("import"), f.Spec.Source.Imports)}
	if !c.IsSet("with") {
		return all, nil
	}
	all.plugins = nil
	for _, text := range c.StringSlice("with") {
		p, err := plugins.Parse(text)
		if err != nil {
			return chosen{}, err
		}
		one := chosenPlugin{Plugin: p}
		if i := slices.IndexFunc(inFile, func(known chosenPlugin) bool { return samePlugin(known.Plugin, p) }); i >= 0 {
			one.entry = inFile[i].entry
		}
		all.plugins = append(all.plugins, one)
	}
	return all, nil
}

// pluginFlagsToRepeat are the flags that name plugins and imports, as they can be
// given again in any folder.
func pluginFlagsToRepeat(c *cli.Context) []string {
	var given []string
	for _, text := range c.StringSlice("with") {
		if p, err := plugins.Parse(text); err == nil && p.Dir != "" {
			text = absolute(p.Dir)
		}
		given = append(given, "--with="+text)
	}
	for _, imported := range c.StringSlice("import") {
		given = append(given, "--import="+imported)
	}
	return given
}

// samePlugin compares what was typed with what stands in a file.
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

// plugins returns what spec.source.plugins names.
func (f *customScheduler) plugins() ([]chosenPlugin, error) {
	var all []chosenPlugin
	for i, entry := range f.Spec.Source.Plugins {
		p, err := f.plugin(entry)
		if err != nil {
			return nil, fmt.Errorf("spec.source.plugins[%d]: %w", i, err)
		}
		all = append(all, chosenPlugin{Plugin: p, entry: entry})
	}
	return all, nil
}

func (f *customScheduler) plugin(entry pluginEntry) (plugins.Plugin, error) {
	var given []string
	for _, one := range []struct{ name, value string }{{"builtin", entry.Builtin}, {"module", entry.Module}, {"path", entry.Path}} {
		if one.value != "" {
			given = append(given, one.name)
		}
	}
	switch {
	case len(given) != 1:
		return plugins.Plugin{}, usagef("give one of builtin, module and path", "a plugin has %s", list(given))
	case entry.Package != "" && entry.Module == "":
		return plugins.Plugin{}, usagef("a path names the package's own folder", "package goes with module only")
	case entry.Path != "":
		if filepath.IsAbs(entry.Path) {
			return plugins.Plugin{Dir: entry.Path}, nil
		}
		return plugins.Plugin{Dir: filepath.Join(f.dir, entry.Path)}, nil
	case entry.Builtin != "":
		return plugins.Parse("builtin:" + entry.Builtin)
	}
	text := entry.Module
	if entry.Package != "" {
		text += ":" + entry.Package
	}
	if !strings.Contains(text, "@") {
		return plugins.Plugin{}, usagef("write it as sigs.k8s.io/scheduler-plugins@v0.32.7", "module %s has no version", entry.Module)
	}
	return plugins.Parse(text)
}

func list(words []string) string {
	if len(words) == 0 {
		return "none of them"
	}
	return strings.Join(words, " and ")
}

// sources returns the plugins for package build.
func (c chosen) sources() []plugins.Plugin {
	var all []plugins.Plugin
	for _, p := range c.plugins {
		all = append(all, p.Plugin)
	}
	return all
}

// hashLength is how much of the plugins' hash stands in a tag.
const hashLength = 10

// tagSuffix tells an image with plugins from one without, and from one with
// other plugins or other sources of them: a runtime does not pull a tag that it
// has already. It is empty without plugins.
func (c chosen) tagSuffix() (string, error) {
	sum, err := plugins.Hash(c.sources(), c.imports, pmksched.Sources)
	if err != nil || sum == "" {
		return "", err
	}
	return "-plugins-" + sum[:hashLength], nil
}

// configure completes what is known of a plugin with what the file says.
func (p chosenPlugin) configure(info plugins.Info) (profiles.Plugin, error) {
	configured := profiles.Plugin{Name: info.Name, Points: info.Points, Weight: p.entry.Weight}
	if p.entry.Enable != nil {
		configured.Enable = append([]string{}, *p.entry.Enable...)
	}
	if !p.entry.Args.IsZero() {
		text, err := yaml.Marshal(&p.entry.Args)
		if err != nil {
			return profiles.Plugin{}, fmt.Errorf("write the args of plugin %s: %w", info.Name, err)
		}
		configured.Args = text
	}
	return configured, nil
}

// pluginNames are the names by which a configuration knows plugins.
func pluginNames(plugins []plugins.Info) []string {
	var names []string
	for _, p := range plugins {
		names = append(names, p.Name)
	}
	return names
}
