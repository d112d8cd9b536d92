package build

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/build/binding"
	"github.com/pmk-sched/pmk-sched/versions"
)

// portableFactory is New of a portable plugin, up to its result.
const portableFactory = "(ctx.Context, scheduler.Arguments, scheduler.Handle)"

// constructor finds New and tells which kind of plugin the package is. For a
// native one the form of its factory comes with it.
func (s *sourcePackage) constructor(p Plugin) (fn *ast.FuncDecl, in scope, native *signature, err error) {
	step := "read plugin " + p.String()
	fn, in, found := s.function("New")
	if !found {
		problem := "package " + s.path + " has no func New"
		if spec, _, _ := s.spec("New"); spec != nil {
			problem = fmt.Sprintf("New of package %s is not a function", s.path)
		}
		return nil, scope{}, nil, &Error{Step: step, Cause: CauseInput, Message: problem, Try: constructorHint + s.otherPackages()}
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
	return nil, scope{}, nil, &Error{
		Step: step, Cause: CauseInput, Try: constructorHint,
		Message: fmt.Sprintf("%s: func New%s makes no plugin", s.files.Position(fn.Pos()), readable(text)),
	}
}

const constructorHint = "a portable plugin has func New(context.Context, scheduler.Arguments, scheduler.Handle) (*MyPlugin, error), " +
	"a native one the PluginFactory of its release"

// portableType returns the name of the type that New makes: it has to be the
// plugin's own, since its methods are what the plugin can do.
func (s *sourcePackage) portableType(p Plugin, fn *ast.FuncDecl, in scope) (string, error) {
	results := in.types(fn.Type.Results)
	if own := s.text() + "."; len(results) == 2 && results[1] == "error" && strings.HasPrefix(results[0], "*"+own) {
		return strings.TrimPrefix(results[0], "*"+own), nil
	}
	return "", &Error{
		Step: "read plugin " + p.String(), Cause: CauseInput,
		Message: fmt.Sprintf("%s: New returns (%s)", s.files.Position(fn.Pos()), strings.Join(results, ", ")),
		Try:     "let it return its own type and an error, (*MyPlugin, error): which extension points the plugin has is seen from the methods of that type",
	}
}

// text is the package as it stands in signatures.
func (s *sourcePackage) text() string {
	if short, found := shortNames[s.path]; found {
		return short
	}
	return s.path
}

// portableAPI is what package scheduler says: the methods of its interfaces.
type portableAPI struct {
	interfaces map[string][]method
	pkg        *sourcePackage
}

// readAPI parses the interfaces of package scheduler in its module's sources.
func readAPI(m *pluginModule) (*portableAPI, error) {
	pkg, err := parsePackage(m, strings.TrimPrefix(apiPackage, apiModule+"/"), m.platform)
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

// interfaceMethods returns the methods that an interface names itself.
func (s *sourcePackage) interfaceMethods(i *ast.InterfaceType, in scope) []method {
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

// methodSet collects the methods of a type of the package, with those that it
// gets from what it embeds: types of its own module, and interfaces of package
// scheduler. Nearer ones hide deeper ones.
func (s *sourcePackage) methodSet(api *portableAPI, typeName string, depth int) map[string]method {
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

// embedded returns the types that a type takes methods from.
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

func (s *sourcePackage) promoted(api *portableAPI, e ast.Expr, in scope, depth int) map[string]method {
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

// check refuses methods that carry the name of one of package scheduler's and
// have another form: the plugin would silently lack that extension point.
func (a *portableAPI) check(p Plugin, typeName string, set map[string]method) error {
	for _, name := range slices.Sorted(maps.Keys(a.interfaces)) {
		for _, want := range a.interfaces[name] {
			got, ok := set[want.name]
			if !ok || got.text == want.text || !isPointMethod(want.name) {
				continue
			}
			return &Error{
				Step: "read plugin " + p.String(), Cause: CauseInput,
				Message: fmt.Sprintf("%s: method %s of %s has another form than that of scheduler.%s", got.at, got.name, typeName, name),
				Try:     fmt.Sprintf("write it as %s%s, or give it another name", want.name, readable(want.text)),
			}
		}
	}
	return nil
}

func isPointMethod(name string) bool {
	return slices.ContainsFunc(binding.Points(), func(p binding.Point) bool {
		return slices.Contains(p.Methods, name) || slices.Contains(p.Optional, name)
	})
}

// compose says which pieces of a release's adapter a plugin is made of. A point
// that the release lacks is an error.
func compose(p Plugin, release versions.Release, set map[string]method) (binding.Composition, error) {
	made, err := binding.Compose(adapterMinor(release), slices.Sorted(maps.Keys(set)))
	if err != nil {
		return binding.Composition{}, &Error{
			Step: "check plugin " + p.String(), Cause: CauseInput, Message: err.Error(), Err: err,
			Try: "give its type the methods of package scheduler for each extension point that the release has",
		}
	}
	return made, nil
}

// adapterMinor is the minor whose files of the adapter a release takes: a release that is newer
// than all of them takes the newest.
func adapterMinor(release versions.Release) int { return min(release.Minor, binding.NewestMinor) }

// configured is an extension point as a configuration writes it: preFilter.
func configured(point string) string { return strings.ToLower(point[:1]) + point[1:] }
