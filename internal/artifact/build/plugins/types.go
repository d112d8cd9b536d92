package plugins

import (
	"go/ast"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// apiPackage is the import path of package scheduler.
const apiPackage = APIModule + "/scheduler"

// shortNames abbreviates import paths in the signatures that are compared.
var shortNames = map[string]string{
	apiPackage: "scheduler",
	"k8s.io/kubernetes/pkg/scheduler/framework":          "framework",
	"k8s.io/kubernetes/pkg/scheduler/framework/v1alpha1": "v1alpha1",
	"k8s.io/kube-scheduler/framework":                    "fwk",
	"k8s.io/apimachinery/pkg/runtime":                    "runtime",
	"k8s.io/api/core/v1":                                 "v1",
	"context":                                            "ctx",
	"time":                                               "time",
}

// scope formats the types in one file as text that does not depend on the names of the file's
// imports.
type scope struct {
	pkg     string
	imports map[string]string
}

var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// fileScope reads the imports of a file in package pkg.
func fileScope(pkg string, file *ast.File) scope {
	s := scope{pkg: pkg, imports: map[string]string{}}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		name := path.Base(imported)
		if majorVersion.MatchString(name) && imported != "k8s.io/api/core/v1" {
			name = path.Base(path.Dir(imported))
		}
		if spec.Name != nil {
			name = spec.Name.Name
		}
		s.imports[name] = imported
	}
	return s
}

// qualified returns the import path and name of a type such as corev1.Pod. A predeclared type's
// path is empty.
func (s scope) qualified(e ast.Expr) (pkg, name string, ok bool) {
	switch e := e.(type) {
	case *ast.Ident:
		if predeclared[e.Name] {
			return "", e.Name, true
		}
		return s.pkg, e.Name, true
	case *ast.SelectorExpr:
		if x, isIdent := e.X.(*ast.Ident); isIdent {
			if imported, found := s.imports[x.Name]; found {
				return imported, e.Sel.Name, true
			}
		}
	case *ast.ParenExpr:
		return s.qualified(e.X)
	}
	return "", "", false
}

var predeclared = map[string]bool{
	"string": true, "bool": true, "error": true, "any": true, "byte": true, "rune": true,
	"int": true, "int8": true, "int16": true, "int32": true, "int64": true,
	"uint": true, "uint8": true, "uint16": true, "uint32": true, "uint64": true, "float32": true, "float64": true,
}

// text formats a type as in the signatures that are compared.
func (s scope) text(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return "*" + s.text(e.X)
	case *ast.ArrayType:
		return "[]" + s.text(e.Elt)
	case *ast.Ellipsis:
		return "..." + s.text(e.Elt)
	case *ast.MapType:
		return "map[" + s.text(e.Key) + "]" + s.text(e.Value)
	case *ast.InterfaceType:
		if len(e.Methods.List) == 0 {
			return "any"
		}
		return "interface{…}"
	case *ast.FuncType:
		return "func" + s.signature(e)
	}
	pkg, name, ok := s.qualified(e)
	switch {
	case !ok:
		return "?"
	case pkg == "":
		return name
	}
	if short, found := shortNames[pkg]; found {
		return short + "." + name
	}
	return pkg + "." + name
}

// types returns the type of each parameter or result.
func (s scope) types(list *ast.FieldList) []string {
	var all []string
	if list == nil {
		return nil
	}
	for _, field := range list.List {
		for range max(1, len(field.Names)) {
			all = append(all, s.text(field.Type))
		}
	}
	return all
}

// signature returns a function's parameters and results: "(ctx.Context) (any, error)".
func (s scope) signature(f *ast.FuncType) string {
	text := "(" + strings.Join(s.types(f.Params), ", ") + ")"
	results := s.types(f.Results)
	switch len(results) {
	case 0:
		return text
	case 1:
		return text + " " + results[0]
	}
	return text + " (" + strings.Join(results, ", ") + ")"
}
