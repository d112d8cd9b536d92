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

	"go.uber.org/zap"
	"golang.org/x/mod/modfile"

	"github.com/pmk-sched/pmk-sched/internal/build/plugins"
	"github.com/pmk-sched/pmk-sched/versions"
)

// PmkExtender is the name of the program that Extender builds.
const PmkExtender = "pmk-extender"

// Where the extender lies in the module of this project, and its main in the generated one.
const (
	apiDir          = "scheduler"
	adapterDir      = "scheduler/adapter"
	extenderFolder  = "scheduler/extender"
	extenderMain    = "cmd/pmk-extender"
	extenderPlugins = extenderMain + "/plugins.go"
	extenderPackage = generatedModule + "/" + extenderMain
)

// ExtenderOptions says what Extender builds, from what, and where.
type ExtenderOptions struct {
	// Version is what the program calls itself.
	Version string
	// Plugins are portable plugins to compile in beside the shipped ones.
	Plugins []plugins.Plugin
	// Sources holds the folders scheduler and cmd/pmk-extender of this program's own module, GoMod and GoSum what
	// stands there.
	Sources      fs.FS
	GoMod, GoSum []byte
	// Platforms to build for; empty means the host's.
	Platforms []Platform

	// The rest is as in Options.
	CacheDir, WorkDir string
	Keep              bool
	Env               []string
	Log               *zap.Logger
	OnStep            func(name string) (done func(err error))
}

// Extender builds the extender with plugins. It is one program for every release of Kubernetes, compiled with
// the versions of this program's own module, and without Kubernetes itself.
func Extender(ctx context.Context, o ExtenderOptions) (_ *Result, err error) {
	if o.CacheDir == "" {
		return nil, noCache()
	}
	j := newJob(o.CacheDir, o.WorkDir, o.Keep, o.Env, o.Log, o.OnStep)
	defer j.close(&err)
	own, err := ownSource(o)
	if err != nil {
		return nil, err
	}
	golang, err := j.goFor(ctx, own)
	if err != nil {
		return nil, err
	}
	set, err := j.extenderSet(ctx, o, golang)
	if err != nil {
		return nil, err
	}
	r, targets, err := j.extenderRecipe(o, own, set, j.knownToolchain(golang))
	if err != nil {
		return nil, err
	}
	if result, found := j.recall(r, targets); found {
		return result, j.keepModule(ctx, r, result, nil)
	}
	used, err := j.findToolchain(ctx, golang)
	if err != nil {
		return nil, err
	}
	if r, targets, err = j.extenderRecipe(o, own, set, used); err != nil {
		return nil, err
	}
	return j.make(ctx, r, targets)
}

// ownSource describes this program's own module as that of a release is described: the versions that everything is held to.
func ownSource(o ExtenderOptions) (source, error) {
	file, err := modfile.Parse("go.mod", o.GoMod, nil)
	if err != nil || file.Go == nil {
		return source{}, fmt.Errorf("read the versions that the extender needs: %w", err)
	}
	s := source{Path: plugins.APIModule, GoDirective: file.Go.Version, GoSum: string(o.GoSum)}
	replaced := map[string]string{}
	for _, r := range file.Replace {
		s.Pins = append(s.Pins, pin{Path: r.Old.Path, Version: r.Old.Version, NewPath: r.New.Path, NewVersion: r.New.Version})
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

// extenderSet reads the shipped plugins, and those that were given.
func (j *job) extenderSet(ctx context.Context, o ExtenderOptions, goVersion string) (*plugins.Set, error) {
	shipped, err := plugins.Builtins(o.Sources)
	if err != nil {
		return nil, err
	}
	all := slices.Clone(o.Plugins)
	for _, name := range shipped {
		if p := (plugins.Plugin{Builtin: name}); !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	// A portable plugin fits every release; the newest has all the points that there are.
	newest := versions.Releases()[0]
	rules, _, err := versions.Select(newest)
	if err != nil {
		return nil, err
	}
	return j.readPlugins(ctx, plugins.Options{
		Plugins: all, Release: newest, Rules: rules, Sources: o.Sources, PortableOnly: true, Platform: pluginPlatform(o.Platforms, rules, goVersion),
	})
}

func (j *job) extenderRecipe(o ExtenderOptions, own source, set *plugins.Set, used toolchain) (*recipe, []target, error) {
	target := pluginTarget(own, own.Pins, "", used.Used)
	files, err := extenderFiles(o, own, set, target)
	if err != nil {
		return nil, nil, fmt.Errorf("generate a module for the extender: %w", err)
	}
	r := &recipe{
		info: Info{
			Release: o.Version, Go: used.Used, GoNamed: used.Named, GoDirective: own.GoDirective,
			Module: plugins.APIModule + "@" + o.Version, Source: "modules", Plugins: set.Infos(),
		},
		with: set, target: target, against: "the extender", files: files, mod: "mod", ldflags: stripped + " -X main.version=" + o.Version,
	}
	if warning := used.warning(PmkExtender); warning != "" {
		r.info.Warnings = []string{warning}
	}
	r.prepare = func(ctx context.Context) (string, string, error) { return j.writeModule(ctx, r) }
	targets, err := r.targets([]Program{{Name: PmkExtender, Package: extenderPackage}}, orHost(o.Platforms))
	return r, targets, err
}

// extenderSource registers the plugins; of what is shipped it is cmd/pmk-extender/plugins.go.
var extenderSource = template.Must(template.New(extenderPlugins).Parse(`package main

import (
	"{{.Extender}}"
{{range $i, $p := .Packages}}
	plugin{{$i}} "{{$p}}"
{{- end}}
)

// plugins are those that this program can serve.
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
	}{Extender: plugins.APIModule + "/" + extenderFolder}
	for _, p := range set.Infos() {
		data.Packages = append(data.Packages, p.Package)
	}
	var text bytes.Buffer
	if err := extenderSource.Execute(&text, data); err != nil {
		return nil, err
	}
	return format.Source(text.Bytes())
}

// extenderFiles returns the generated module: the main with the plugins, this program's module as a folder of it, and
// those of plugins. Every module that this program's own go.mod names is held to its version.
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
	files[plugins.APIDir+"/go.mod"] = fmt.Appendf(nil, "module %s\n\ngo %s\n\nrequire (\n\t%s\n)\n", plugins.APIModule, own.GoDirective, strings.Join(requires, "\n\t"))
	pluginRequires, replaces := set.Directives(target)
	for _, p := range own.Pins {
		replaces = append(replaces, fmt.Sprintf("%s => %s %s", strings.TrimSpace(p.Path+" "+p.Version), p.NewPath, p.NewVersion))
	}
	slices.Sort(replaces)
	files["go.mod"] = fmt.Appendf(nil, "module %s\n\ngo %s\n\nrequire (\n\t%s\n)\n\nreplace (\n\t%s\n)\n", generatedModule, own.GoDirective,
		strings.Join(slices.Concat(pluginRequires, requires), "\n\t"), strings.Join(replaces, "\n\t"))
	maps.Copy(files, set.ModuleFiles(target))
	files["go.sum"] = sortedLines(own.GoSum + set.Sums())
	return files, nil
}

// extenderSources returns what of this program's module the extender is made of.
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
