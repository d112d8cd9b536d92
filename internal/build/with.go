package build

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/mod/module"

	"github.com/pmk-sched/pmk-sched/internal/build/binding"
	"github.com/pmk-sched/pmk-sched/versions"
)

// pluginSet is what plugins add to the generated module.
type pluginSet struct {
	// plugins are sorted by package, modules by path: in which order they were
	// given does not change the binary.
	plugins []resolvedPlugin
	modules []*pluginModule
	// api holds the sources of package scheduler, and of shipped plugins.
	api     *pluginModule
	imports []string
	release versions.Release
	// against says what is compiled with the plugins, if not the release.
	against string
	// newer says what the modules ask for that the release does not have.
	newer []string
}

// resolvedPlugin is a plugin whose sources were read.
type resolvedPlugin struct {
	info  PluginInfo
	given Plugin
	// made is what the adapter of a portable plugin is composed of.
	made binding.Composition
}

// pluginReader reads the sources of plugins.
type pluginReader struct {
	*job
	release  versions.Release
	rules    versions.Rules
	sources  fs.FS
	platform platformOf
	// read are the modules read so far, by folder or by module@version.
	read map[string]*pluginModule
	api  *portableAPI
	set  *pluginSet
	// portableOnly refuses native plugins.
	portableOnly bool
}

// pluginSet finds and parses the sources of plugins, and refuses what would
// fail later: a plugin that does not fit the release, or two of one name.
func (j *job) pluginSet(ctx context.Context, o Options, rules versions.Rules, goVersion string) (*pluginSet, error) {
	if len(o.Plugins) == 0 && len(o.Imports) == 0 {
		return nil, nil
	}
	r := &pluginReader{
		job: j, release: o.Release, rules: rules, sources: o.Sources, read: map[string]*pluginModule{},
		platform:     platformOf{platform: orHost(o.Platforms)[0], tags: strings.Split(buildTags(rules), ","), goVersion: goVersion},
		portableOnly: o.portableOnly,
		set:          &pluginSet{imports: slices.Compact(slices.Sorted(slices.Values(o.Imports))), release: o.Release},
	}
	for _, imported := range r.set.imports {
		if err := module.CheckImportPath(imported); err != nil {
			return nil, &Error{Step: "read --import " + imported, Cause: CauseInput, Message: "it is not an import path", Err: err, Try: "write it as sigs.k8s.io/scheduler-plugins/apis/config/scheme"}
		}
	}
	for _, p := range o.Plugins {
		if err := r.plugin(ctx, p); err != nil {
			return nil, err
		}
	}
	return r.set, r.finish()
}

// plugin reads one plugin.
func (r *pluginReader) plugin(ctx context.Context, p Plugin) error {
	if err := p.check(); err != nil {
		return err
	}
	m, dir, err := r.locate(ctx, p)
	if err != nil {
		return err
	}
	pkg, err := parsePackage(m, dir, r.platform)
	if err != nil {
		return err
	}
	if pkg.parsed[0].Name.Name == "main" {
		return &Error{Step: "read plugin " + p.String(), Cause: CauseInput, Message: "package " + pkg.path + " is a program", Try: "name the package of the plugin itself; " + m.packagesHint()}
	}
	fn, in, native, err := pkg.constructor(p)
	if err != nil {
		return err
	}
	_, _, rules := pkg.function("Rules")
	name, err := pkg.constantName(p)
	if err != nil {
		return err
	}
	found := resolvedPlugin{given: p, info: PluginInfo{Name: name, Package: pkg.path, Origin: origin(p, m), Rules: rules}}
	if native != nil && r.portableOnly {
		return nativeInExtender(p)
	}
	if native != nil {
		fit := fitNative(*native, pkg.methods(""))
		if !fit.minors.has(r.release.Minor) {
			return fit.refuse(p, r.release)
		}
		found.info.Kind, found.info.Points = KindNative, nativePoints(pkg.methods(""))
		r.set.plugins = append(r.set.plugins, found)
		return nil
	}
	typeName, err := pkg.portableType(p, fn, in)
	if err != nil {
		return err
	}
	if err := r.portable(p, pkg, typeName, &found); err != nil {
		return err
	}
	r.set.plugins = append(r.set.plugins, found)
	return nil
}

// portable completes what is known of a portable plugin.
func (r *pluginReader) portable(p Plugin, pkg *sourcePackage, typeName string, found *resolvedPlugin) error {
	if _, err := r.apiModule(); err != nil {
		return err
	}
	methods := pkg.methodSet(r.api, typeName, maxDepth)
	err := r.api.check(p, typeName, methods)
	if err == nil {
		found.made, err = compose(p, r.release, methods)
	}
	if err != nil {
		return err
	}
	found.info.Kind = KindPortable
	for _, point := range found.made.Points {
		found.info.Points = append(found.info.Points, configured(point))
	}
	return nil
}

// origin says where a plugin came from, without the place of a folder.
func origin(p Plugin, m *pluginModule) string {
	if p.Dir != "" {
		return "dir " + m.path
	}
	return p.String()
}

// finish sorts what was read and refuses names that are taken.
func (r *pluginReader) finish() error {
	slices.SortFunc(r.set.plugins, func(a, b resolvedPlugin) int { return strings.Compare(a.info.Package, b.info.Package) })
	slices.SortFunc(r.set.modules, func(a, b *pluginModule) int { return strings.Compare(a.path, b.path) })
	for i, m := range r.set.modules {
		m.folder = fmt.Sprintf("plugins/%d", i)
		if i > 0 && r.set.modules[i-1].path == m.path {
			return &Error{Step: "read plugins", Cause: CauseInput, Message: fmt.Sprintf("module %s is to be compiled from %s and from %s", m.path, r.set.modules[i-1].place, m.place), Try: "take all plugins of one module from one place"}
		}
	}
	return checkNames(r.set.plugins, r.rules, r.release)
}

// checkNames refuses a plugin that is registered twice or takes the name of one
// of the release's own: the scheduler would not start.
func checkNames(plugins []resolvedPlugin, rules versions.Rules, release versions.Release) error {
	byName := map[string]resolvedPlugin{}
	for _, p := range plugins {
		step := "check plugin " + p.given.String()
		if slices.Contains(rules.Plugins, p.info.Name) {
			return &Error{Step: step, Cause: CauseInput, Message: fmt.Sprintf("%s has a plugin %s of its own", release, p.info.Name), Try: "give the plugin's constant Name another value"}
		}
		if other, twice := byName[p.info.Name]; twice {
			return &Error{Step: step, Cause: CauseInput, Message: fmt.Sprintf("plugin %s is there already, from %s", p.info.Name, other.given), Try: "leave one of them out, or give one another Name"}
		}
		byName[p.info.Name] = p
	}
	return nil
}

// readPlugins reads the plugins of a build, if there are any.
func (k *kubernetesBuild) readPlugins(ctx context.Context, s source, goVersion string) (err error) {
	if k.plugins == nil {
		return nil
	}
	if k.with, err = k.pluginSet(ctx, *k.plugins, k.rules, goVersion); err != nil {
		return err
	}
	k.with.newer = k.with.wanted(s)
	return nil
}

// pluginsNeedModules refuses plugins in a build from a repository, whose own
// module and vendor folder have no place for them.
func pluginsNeedModules(o Options) *Error {
	return &Error{
		Step: "build " + o.Release.String(), Cause: CauseInput, Message: "plugins are compiled with the release's modules, not with a source of its own",
		Try: "leave --source out, or the plugins",
	}
}

// importPaths returns the packages imported besides plugins.
func (s *pluginSet) importPaths() []string {
	if s == nil {
		return nil
	}
	return s.imports
}

// infos returns what is known of the plugins.
func (s *pluginSet) infos() []PluginInfo {
	if s == nil {
		return nil
	}
	var all []PluginInfo
	for _, p := range s.plugins {
		all = append(all, p.info)
	}
	return all
}
