package plugins

import (
	"cmp"
	"context"
	"fmt"
	"go/ast"
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/mod/module"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Options are the inputs of Read.
type Options struct {
	Plugins []Plugin
	// Imports are packages that are imported for their side effects, such as registering a scheme for
	// arguments.
	Imports []string
	// Release is the release that the plugins are compiled for, and Rules are its rules.
	Release versions.Release
	Rules   versions.Rules
	// Platform selects a package's files.
	Platform Platform
	// Sources contains the directory scheduler of this project's module. Portable plugins need it.
	Sources fs.FS
	// PortableOnly refuses native plugins.
	PortableOnly bool
	// Download returns the directory with a module version. Only plugins from modules need it.
	Download func(ctx context.Context, modulePath, version string) (dir string, err error)
}

type reader struct {
	options Options
	// read are the modules that were read, by directory or by module@version.
	read map[string]*pluginModule
	api  *portableAPI
	set  *Set
}

// Read finds and parses the sources of plugins. It refuses plugins that would fail later, such as a
// plugin that does not fit the release, or two with one name.
func Read(ctx context.Context, o Options) (*Set, error) {
	r := &reader{
		options: o, read: map[string]*pluginModule{},
		set: &Set{imports: slices.Compact(slices.Sorted(slices.Values(o.Imports))), release: o.Release},
	}
	for _, imported := range r.set.imports {
		if err := module.CheckImportPath(imported); err != nil {
			return nil, problem.Invalidf("write it as sigs.k8s.io/scheduler-plugins/apis/config/scheme",
				"invalid --import %q: must be an import path", imported)
		}
	}
	for _, p := range o.Plugins {
		if err := r.plugin(ctx, p); err != nil {
			return nil, err
		}
	}
	return r.set, r.finish()
}

func (r *reader) plugin(ctx context.Context, p Plugin) error {
	if err := p.check(); err != nil {
		return err
	}
	m, dir, err := r.locate(ctx, p)
	if err != nil {
		return err
	}
	pkg, err := parsePackage(m, dir, r.options.Platform)
	if err != nil {
		return err
	}
	if pkg.parsed[0].Name.Name == "main" {
		return p.invalidf("name the package of the plugin; "+m.packagesHint(), "package %s is a program", pkg.path)
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
	if p.Name != "" && r.options.PortableOnly {
		return p.invalidf("write it without a name", "an extender does not register plugins")
	}
	sum, err := m.sum()
	if err != nil {
		return fmt.Errorf("hash plugin %s: %w", p, err)
	}
	info := Info{Name: cmp.Or(p.Name, name), Package: pkg.path, Origin: origin(p, m), Rules: rules, SHA256: sum}
	found := resolved{given: p, info: info}
	if native != nil {
		err = r.native(p, pkg, *native, &found)
	} else {
		err = r.portable(p, pkg, fn, in, &found)
	}
	if err != nil {
		return err
	}
	r.set.plugins = append(r.set.plugins, found)
	return nil
}

func (r *reader) native(p Plugin, pkg *pluginPackage, factory signature, found *resolved) error {
	if r.options.PortableOnly {
		return p.invalidf(
			"compile it into the scheduler with `pmk-sched build --with`; an extender serves portable plugins, which "+
				"`pmk-sched plugin new` creates",
			"it uses the scheduling framework, which an extender does not have")
	}
	methods := pkg.methods("")
	fit := fitNative(factory, methods)
	if !fit.minors.has(r.options.Release.Minor) {
		return fit.refuse(p, r.options.Release)
	}
	found.info.Kind, found.info.Points, found.info.Signs = KindNative, nativePoints(methods), nativeSigns(methods)
	return nil
}

func (r *reader) portable(p Plugin, pkg *pluginPackage, fn *ast.FuncDecl, in scope, found *resolved) error {
	typeName, err := pkg.portableType(p, fn, in)
	if err != nil {
		return err
	}
	if _, err := r.apiModule(); err != nil {
		return err
	}
	methods := pkg.methodSet(r.api, typeName, maxDepth)
	if err := r.api.check(p, typeName, methods); err != nil {
		return err
	}
	if found.composition, err = compose(p, r.options.Release, methods); err != nil {
		return err
	}
	found.info.Kind = KindPortable
	for _, point := range found.composition.Points {
		found.info.Points = append(found.info.Points, configured(point))
	}
	_, found.info.Signs = methods["Sign"]
	return nil
}

// origin describes where a plugin came from, without a directory's path.
func origin(p Plugin, m *pluginModule) string {
	if p.Dir != "" {
		return "dir " + m.path
	}
	return p.String()
}

// finish sorts the plugins and modules and refuses duplicate modules and names.
func (r *reader) finish() error {
	slices.SortFunc(r.set.plugins, func(a, b resolved) int { return strings.Compare(a.info.Package, b.info.Package) })
	slices.SortFunc(r.set.modules, func(a, b *pluginModule) int { return strings.Compare(a.path, b.path) })
	for i, m := range r.set.modules {
		m.dir = fmt.Sprintf("plugins/%d", i)
		if i > 0 && r.set.modules[i-1].path == m.path {
			return problem.Invalidf("take all plugins of a module from one place",
				"read plugins: module %s is in both %s and %s", m.path, r.set.modules[i-1].shownAs, m.shownAs)
		}
	}
	return checkNames(r.set.plugins, r.options.Rules, r.options.Release)
}

// checkNames refuses a plugin that is registered twice or named like an in-tree plugin: the
// scheduler would not start.
func checkNames(plugins []resolved, rules versions.Rules, release versions.Release) error {
	byName, byPackage := map[string]resolved{}, map[string]resolved{}
	for _, p := range plugins {
		if other, twice := byPackage[p.info.Package]; twice && other.info.Name != p.info.Name {
			return p.given.invalidf("remove one of them", "package %s is compiled in as %s too", p.info.Package, other.info.Name)
		}
		byPackage[p.info.Package] = p
		if slices.Contains(rules.Plugins, p.info.Name) {
			return p.given.invalidf("give the plugin's constant Name another value", "%s has an in-tree plugin %s",
				release, p.info.Name)
		}
		if other, twice := byName[p.info.Name]; twice {
			return p.given.invalidf("remove one of them, or change the constant Name of one", "%s has a plugin %s too",
				other.given, p.info.Name)
		}
		byName[p.info.Name] = p
	}
	return nil
}
