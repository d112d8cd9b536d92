package plugins

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/versions"
)

// portableFactory is New of a portable plugin, up to its result.
const portableFactory = "(ctx.Context, scheduler.Arguments, scheduler.Handle)"

// constructor finds New. native is the signature of a native plugin's factory, and nil for a
// portable one.
func (s *pluginPackage) constructor(p Plugin) (fn *ast.FuncDecl, in scope, native *signature, err error) {
	fn, in, found := s.function("New")
	if !found {
		message := "package " + s.path + " has no func New"
		if spec, _, _ := s.spec("New"); spec != nil {
			message = fmt.Sprintf("New of package %s is not a function", s.path)
		}
		return nil, scope{}, nil, p.invalidf(constructorHint+s.otherPackages(), "%s", message)
	}
	text := in.signature(fn.Type)
	for i := range factories {
		if factories[i].text == text {
			return fn, in, &factories[i], nil
		}
	}
	if strings.HasPrefix(text, portableFactory+" ") {
		return fn, in, nil, nil
	}
	return nil, scope{}, nil, p.invalidf(constructorHint, "%s: func New%s is not the factory of a plugin",
		s.files.Position(fn.Pos()), readable(text))
}

const constructorHint = "a portable plugin has func New(context.Context, scheduler.Arguments, scheduler.Handle) " +
	"(*MyPlugin, error), " +
	"a native one the PluginFactory of its release"

// portableType returns the name of the type that New returns. It must be the plugin's own type: its
// methods decide which extension points the plugin has.
func (s *pluginPackage) portableType(p Plugin, fn *ast.FuncDecl, in scope) (string, error) {
	results := in.types(fn.Type.Results)
	if own := s.text() + "."; len(results) == 2 && results[1] == "error" && strings.HasPrefix(results[0], "*"+own) {
		return strings.TrimPrefix(results[0], "*"+own), nil
	}
	return "",
		p.invalidf(
			"return the plugin's own type and an error, (*MyPlugin, error): the methods of that type decide which extension "+
				"points the plugin has",
			"%s: New returns (%s)", s.files.Position(fn.Pos()), strings.Join(results, ", "))
}

// text returns the package as signatures show it.
func (s *pluginPackage) text() string {
	if short, found := shortNames[s.path]; found {
		return short
	}
	return s.path
}

type portableAPI struct {
	interfaces map[string][]method
	pkg        *pluginPackage
}

func readAPI(m *pluginModule) (*portableAPI, error) {
	pkg, err := parsePackage(m, strings.TrimPrefix(apiPackage, APIModule+"/"), m.platform)
	if err != nil {
		return nil, err
	}
	api := &portableAPI{interfaces: map[string][]method{}, pkg: pkg}
	for _, f := range pkg.parsed {
		ast.Inspect(f.File, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if i, ok := spec.Type.(*ast.InterfaceType); ok {
					api.interfaces[spec.Name.Name] = pkg.interfaceMethods(i, f.scope)
				}
			}
			return true
		})
	}
	return api, nil
}

// interfaceMethods returns the methods that an interface declares itself.
func (s *pluginPackage) interfaceMethods(i *ast.InterfaceType, in scope) []method {
	var all []method
	for _, field := range i.Methods.List {
		if fn, ok := field.Type.(*ast.FuncType); ok {
			for _, name := range field.Names {
				all = append(all, method{name.Name, in.signature(fn), s.files.Position(name.Pos())})
			}
		}
	}
	return all
}

// methodSet returns the methods of a type in the package, with those promoted from embedded types
// in its module and from embedded interfaces in package scheduler. Shallower methods hide deeper
// ones.
func (s *pluginPackage) methodSet(api *portableAPI, typeName string, depth int) map[string]method {
	set := map[string]method{}
	if depth == 0 {
		return set
	}
	spec, _, in := s.spec(typeName)
	declared, ok := spec.(*ast.TypeSpec)
	if !ok {
		return set
	}
	for _, e := range embedded(declared.Type) {
		for name, m := range s.promoted(api, e, in, depth) {
			if _, hidden := set[name]; !hidden {
				set[name] = m
			}
		}
	}
	if i, ok := declared.Type.(*ast.InterfaceType); ok {
		for _, m := range s.interfaceMethods(i, in) {
			set[m.name] = m
		}
	}
	for _, m := range s.methods(typeName) {
		set[m.name] = m
	}
	return set
}

// embedded returns a type's embedded types.
func embedded(e ast.Expr) []ast.Expr {
	var fields *ast.FieldList
	switch e := e.(type) {
	case *ast.StructType:
		fields = e.Fields
	case *ast.InterfaceType:
		fields = e.Methods
	default:
		return nil
	}
	var types []ast.Expr
	for _, field := range fields.List {
		if _, isMethod := field.Type.(*ast.FuncType); !isMethod && len(field.Names) == 0 {
			types = append(types, field.Type)
		}
	}
	return types
}

func (s *pluginPackage) promoted(api *portableAPI, e ast.Expr, in scope, depth int) map[string]method {
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}
	pkg, name, ok := in.qualified(e)
	if !ok || pkg == "" {
		return nil
	}
	if pkg == apiPackage {
		return api.pkg.methodSet(api, name, depth-1)
	}
	other, ok := s.sibling(pkg)
	if !ok {
		return nil
	}
	return other.methodSet(api, name, depth-1)
}

// check refuses methods with the name of a package scheduler method and another signature: the
// plugin would silently lack that extension point.
func (a *portableAPI) check(p Plugin, typeName string, set map[string]method) error {
	for _, name := range slices.Sorted(maps.Keys(a.interfaces)) {
		for _, want := range a.interfaces[name] {
			got, ok := set[want.name]
			if !ok || got.text == want.text || !isPointMethod(want.name) {
				continue
			}
			return p.invalidf(fmt.Sprintf("declare it as %s%s, or rename it", want.name, readable(want.text)),
				"%s: the signature of method %s of %s differs from that of scheduler.%s", got.at, got.name, typeName, name)
		}
	}
	return nil
}

func isPointMethod(name string) bool {
	return slices.ContainsFunc(Points(), func(p Point) bool {
		return slices.Contains(p.Methods, name) || slices.Contains(p.Optional, name)
	})
}

// compose returns the composition of a plugin from a release's adapter types. An extension point
// that the release does not have is an error.
func compose(p Plugin, release versions.Release, set map[string]method) (Composition, error) {
	composition, err := Compose(adapterMinor(release), slices.Sorted(maps.Keys(set)))
	if err != nil {
		return Composition{},
			p.invalidf("implement the methods of package scheduler for extension points that the release has", "%w", err)
	}
	return composition, nil
}

// adapterMinor returns the minor whose adapter files a release uses. A release that is newer than
// all of them uses the newest.
func adapterMinor(release versions.Release) int { return min(release.Minor, NewestMinor) }

// configured returns the name of an extension point in a configuration: preFilter.
func configured(point string) string { return strings.ToLower(point[:1]) + point[1:] }
