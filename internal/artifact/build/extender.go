package build

import (
	"bytes"
	"context"
	"fmt"
	"go/format"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"text/template"

	"golang.org/x/mod/modfile"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/versions"
)

// PmkExtender is the name of the program that Extender builds.
const PmkExtender = "pmk-extender"

// The directories of the extender in this project's module, and its main package in the generated
// one.
const (
	apiDir          = "scheduler"
	adapterDir      = "scheduler/adapter"
	extenderDir     = "scheduler/extender"
	extenderMain    = "cmd/pmk-extender"
	extenderPlugins = extenderMain + "/plugins.go"
	extenderPackage = generatedModule + "/" + extenderMain
)

// ExtenderOptions are the inputs and directories of Extender.
type ExtenderOptions struct {
	Environment
	// Version is the version that the program prints.
	Version string
	// Plugins are portable plugins to compile in, in addition to the bundled ones.
	Plugins []plugins.Plugin
	// Sources contains the directories scheduler and cmd/pmk-extender of this project's module.
	// GoMod and GoSum are its go.mod and go.sum.
	Sources      fs.FS
	GoMod, GoSum []byte
	// Platforms to build for. If it is empty, the extender is built for the host's platform.
	Platforms []Platform
	// Keep keeps the generated module; Result.Dir is its path.
	Keep bool
}

// Extender builds the extender with plugins. It is one program for every Kubernetes release,
// compiled with the versions of this project's module, and without Kubernetes.
func Extender(ctx context.Context, o ExtenderOptions) (_ *Result, err error) {
	j, err := newJob(o.Environment)
	if err != nil {
		return nil, err
	}
	defer j.close(&err)
	j.compiler.keep = o.Keep
	golang, recipeFor, err := j.readExtender(ctx, o)
	if err != nil {
		return nil, err
	}
	return j.compiler.build(ctx, j.toolchains, golang, recipeFor)
}

// FetchExtender downloads all modules that the build of an extender needs, and compiles nothing.
func FetchExtender(ctx context.Context, o ExtenderOptions) (err error) {
	j, err := newJob(o.Environment)
	if err != nil {
		return err
	}
	defer j.close(&err)
	golang, recipeFor, err := j.readExtender(ctx, o)
	if err != nil {
		return err
	}
	used, err := j.toolchains.find(ctx, golang)
	if err != nil {
		return err
	}
	r, err := recipeFor(used)
	if err != nil {
		return err
	}
	_, err = j.compiler.prepare(ctx, r)
	return err
}

// readExtender reads an extender's sources. It returns the Go version to compile with, and the
// recipe for the version that is used.
func (j *job) readExtender(
	ctx context.Context, o ExtenderOptions,
) (golang string, recipeFor func(toolchain) (*recipe, error), err error) {
	own, err := readOwnSource(o)
	if err != nil {
		return "", nil, err
	}
	if golang, err = j.goTool.versionFor(ctx, own); err != nil {
		return "", nil, err
	}
	set, err := extenderSet(ctx, j.goTool, o, golang)
	return golang, func(used toolchain) (*recipe, error) { return j.compiler.extenderRecipe(o, own, set, used) }, err
}

// readOwnSource describes this project's module, whose versions everything in the extender has.
func readOwnSource(o ExtenderOptions) (source, error) {
	file, err := modfile.Parse("go.mod", o.GoMod, nil)
	if err != nil || file.Go == nil {
		return source{}, fmt.Errorf("read the versions that the extender needs: %w", err)
	}
	s := source{Path: plugins.APIModule, GoDirective: file.Go.Version, GoSum: string(o.GoSum)}
	replaced := map[string]string{}
	for _, r := range file.Replace {
		s.Pins = append(s.Pins,
			pin{Path: r.Old.Path, Version: r.Old.Version, NewPath: r.New.Path, NewVersion: r.New.Version})
		if r.Old.Version == "" {
			replaced[r.Old.Path] = r.New.Version
		}
	}
	for _, r := range file.Require {
		switch version := replaced[r.Mod.Path]; {
		case r.Mod.Path == kubernetes:
			s.Version = r.Mod.Version
		case version != "":
			s.Required = append(s.Required, ModuleVersion{Path: r.Mod.Path, Version: version})
		default:
			s.Required = append(s.Required, ModuleVersion{Path: r.Mod.Path, Version: r.Mod.Version})
		}
	}
	return s, nil
}

// extenderSet reads the given plugins and the bundled ones, except those with Permit: an extender
// refuses to serve them.
func extenderSet(ctx context.Context, tool *goTool, o ExtenderOptions, goVersion string) (*plugins.Set, error) {
	names, err := plugins.Builtins(o.Sources)
	if err != nil {
		return nil, err
	}
	var bundled []plugins.Plugin
	for _, name := range names {
		bundled = append(bundled, plugins.Plugin{Builtin: name})
	}
	// A portable plugin fits every release; the newest has all extension points.
	newest := versions.Releases()[0]
	rules := newest.Rules()
	read := func(list []plugins.Plugin) (*plugins.Set, error) {
		return readPlugins(ctx, tool, plugins.Options{
			Plugins: list, Release: newest, Rules: rules, Sources: o.Sources, PortableOnly: true,
			Platform: pluginPlatform(o.Platforms, rules, goVersion),
		})
	}
	described, err := read(bundled)
	if err != nil {
		return nil, err
	}
	all := slices.Clone(o.Plugins)
	for i, info := range described.InfosOf(bundled) {
		if !slices.Contains(info.Points, "permit") && !slices.Contains(all, bundled[i]) {
			all = append(all, bundled[i])
		}
	}
	return read(all)
}

func (c *compiler) extenderRecipe(o ExtenderOptions, own source, set *plugins.Set, used toolchain) (*recipe, error) {
	target := pluginTarget(own, own.Pins, "", used.Used)
	files, err := extenderFiles(o, own, set, target)
	if err != nil {
		return nil, fmt.Errorf("generate a module for the extender: %w", err)
	}
	r := &recipe{
		info: Info{
			Release: o.Version, Go: used.Used, GoNamed: used.Named, GoDirective: own.GoDirective,
			Module: plugins.APIModule + "@" + o.Version, Source: "modules", Plugins: set.Infos(),
		},
		plugins: set, target: target, against: "the extender", files: files, mod: "mod", ldflags: stripped +
			" -X main.version=" + o.Version,
	}
	if warning := used.warning(PmkExtender); warning != "" {
		r.info.Warnings = []string{warning}
	}
	r.prepare = func(ctx context.Context) (*prepared, error) { return c.writeModule(ctx, r) }
	return r, r.setTargets([]Program{{Name: PmkExtender, Package: extenderPackage}}, o.Platforms)
}

// extenderSource registers the plugins; with the bundled ones it is cmd/pmk-extender/plugins.go.
var extenderSource = template.Must(template.New(extenderPlugins).Parse(`package main

import (
	"{{.Extender}}"
{{range $i, $p := .Packages}}
	plugin{{$i}} "{{$p}}"
{{- end}}
)

// plugins returns the plugins that this program can serve.
func plugins() []extender.Registration {
	return []extender.Registration{
{{- range $i, $p := .Packages}}
		extender.Register(plugin{{$i}}.Name, plugin{{$i}}.New),
{{- end}}
	}
}
`))

func extenderRegistrations(set *plugins.Set) ([]byte, error) {
	data := struct {
		Extender string
		Packages []string
	}{Extender: plugins.APIModule + "/" + extenderDir}
	for _, p := range set.Infos() {
		data.Packages = append(data.Packages, p.Package)
	}
	var text bytes.Buffer
	if err := extenderSource.Execute(&text, data); err != nil {
		return nil, err
	}
	return format.Source(text.Bytes())
}

// extenderFiles returns the generated module: the main with the plugins, and this project's module
// and the modules of the plugins as directories. Every module that this project's go.mod requires
// has its version.
func extenderFiles(o ExtenderOptions, own source, set *plugins.Set, target plugins.Target) (map[string][]byte, error) {
	files := map[string][]byte{}
	sources, err := extenderSources(o.Sources)
	if err != nil {
		return nil, err
	}
	imported := map[string]bool{}
	for name, data := range sources {
		to := plugins.APIDir + "/" + name
		if strings.HasPrefix(name, extenderMain+"/") {
			to = name
		}
		files[to] = data
		for _, r := range own.Required {
			if bytes.Contains(data, []byte(`"`+r.Path+`"`)) || bytes.Contains(data, []byte(`"`+r.Path+`/`)) {
				imported[r.Path+" "+r.Version] = true
			}
		}
	}
	if files[extenderPlugins], err = extenderRegistrations(set); err != nil {
		return nil, err
	}
	requires := slices.Sorted(maps.Keys(imported))
	files[plugins.APIDir+"/go.mod"] = fmt.Appendf(nil, "module %s\n\ngo %s\n\nrequire (\n\t%s\n)\n", plugins.APIModule,
		own.GoDirective, strings.Join(requires, "\n\t"))
	pluginRequires, replaces := set.Directives(target)
	for _, p := range own.Pins {
		replaces = append(replaces,
			fmt.Sprintf("%s => %s %s", strings.TrimSpace(p.Path+" "+p.Version), p.NewPath, p.NewVersion))
	}
	slices.Sort(replaces)
	files["go.mod"] = fmt.Appendf(nil, "module %s\n\ngo %s\n\nrequire (\n\t%s\n)\n\nreplace (\n\t%s\n)\n",
		generatedModule, own.GoDirective,
		strings.Join(slices.Concat(pluginRequires, requires), "\n\t"), strings.Join(replaces, "\n\t"))
	maps.Copy(files, set.ModuleFiles(target))
	files["go.sum"] = sortedLines(own.GoSum + set.Sums())
	return files, nil
}

// extenderSources returns the extender's files from this project's module.
func extenderSources(sources fs.FS) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, top := range []string{apiDir, extenderMain} {
		err := fs.WalkDir(sources, top, func(name string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && (name == adapterDir || entry.Name() == "testdata"):
				return fs.SkipDir
			case entry.IsDir() || path.Ext(name) != ".go" || !plugins.IsSource(name):
				return nil
			}
			files[name], err = fs.ReadFile(sources, name)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read the sources of the extender: %w", err)
		}
	}
	return files, nil
}
