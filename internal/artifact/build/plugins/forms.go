package plugins

import (
	"go/ast"
	"slices"
	"strings"
)

// MethodForms returns the signatures that a minor accepts for native plugins' factory and methods,
// by function name, in the notation of [InterfaceForms].
func MethodForms(minor int) map[string][]string {
	forms := map[string][]string{}
	for _, known := range slices.Concat(factories, extensionMethods) {
		if !(span{known.from, known.until}).has(minor) {
			continue
		}
		for _, cycle := range cycleTypes {
			if (span{cycle.from, cycle.until}).has(minor) {
				text := strings.NewReplacer("{C}", cycle.state, "{S}", cycle.status).Replace(known.text)
				forms[known.name] = append(forms[known.name], text)
			}
		}
	}
	return forms
}

// InterfaceForms returns the method signatures of the interfaces that a package's file declares, by
// interface and method. A function type has its own signature under "New".
func InterfaceForms(pkg string, file *ast.File) map[string]map[string]string {
	names, forms := fileScope(pkg, file), map[string]map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		methods := map[string]string{}
		switch t := spec.Type.(type) {
		case *ast.FuncType:
			methods["New"] = names.signature(t)
		case *ast.InterfaceType:
			for _, m := range t.Methods.List {
				if f, isMethod := m.Type.(*ast.FuncType); isMethod && len(m.Names) == 1 {
					methods[m.Names[0].Name] = names.signature(f)
				}
			}
		default:
			return true
		}
		forms[spec.Name.Name] = methods
		return true
	})
	return forms
}
