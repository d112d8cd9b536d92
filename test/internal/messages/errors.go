package messages

import (
	"cmp"
	"go/ast"
	"slices"
	"strings"
	"unicode"
)

// Error is an error that pmk-sched may print.
type Error struct {
	// Package makes it.
	Package string
	// Text is the message. Capitals and … are placeholders.
	Text string
	// Remedies are the hints that are printed with it, of which one or more apply.
	Remedies []string
	// Status is the exit status: 1, 2 if the input is wrong, or 3 if a check failed.
	Status int
}

// Errors returns the errors with a remedy and the errors about the input, each once, in the order
// of their packages and texts.
func (s *Source) Errors() []Error {
	var all []Error
	add := func(e Error) {
		if e.Package == "internal/deploy/preflight" { // its errors are those of checks
			e.Status = 3
		}
		e.Text = strings.Join(strings.Fields(e.Text), " ")
		e.Remedies = slices.DeleteFunc(e.Remedies, func(r string) bool { return !strings.ContainsFunc(r, unicode.IsLower) })
		if (len(e.Remedies) > 0 || e.Status == 2) && strings.ContainsFunc(e.Text, unicode.IsLower) {
			all = append(all, e)
		}
	}
	for _, p := range s.sorted() {
		s.inspect(p, func(at scope, n ast.Node) {
			switch n := n.(type) {
			case *ast.CallExpr:
				if e, ok := at.constructed(n); ok {
					add(e)
				}
			case *ast.CompositeLit:
				if e, ok := at.literal(n); ok {
					add(e)
				}
			case *ast.FuncDecl:
				if n.Name.Name == "Hint" && n.Recv != nil {
					for _, e := range at.typed(n) {
						add(e)
					}
				}
			}
		})
	}
	slices.SortStableFunc(all, func(a, b Error) int {
		return cmp.Or(strings.Compare(a.Package, b.Package), strings.Compare(a.Text, b.Text))
	})
	return slices.CompactFunc(all, func(a, b Error) bool {
		return a.Package == b.Package && a.Text == b.Text && slices.Equal(a.Remedies, b.Remedies)
	})
}

// constructed returns the error of a call of problem.Errorf, problem.Invalidf, problem.WithHint or
// of another function whose last parameters are a hint, a format and its arguments.
func (at scope) constructed(call *ast.CallExpr) (Error, bool) {
	name := calledName(call)
	e := Error{Package: at.p.path, Status: 1}
	if f, ok := call.Fun.(*ast.SelectorExpr); ok && isNamed(f.X, "problem") {
		switch {
		case name == "WithHint" && len(call.Args) == 2:
			e.Text, e.Remedies = at.text(call.Args[0], 0), at.texts(call.Args[1], 0)
			return e, true
		case name == "Invalidf" && len(call.Args) > 1:
			e.Status = 2
		case name != "Errorf" || len(call.Args) < 2:
			return e, false
		}
		e.Text, e.Remedies = at.format(call.Args[1], call.Args[2:], 0), at.texts(call.Args[0], 0)
		return e, true
	}
	from := at.hintParameter(call)
	if from < 0 || len(call.Args) < from+2 || at.p.path == "internal/deploy/health" {
		return e, false
	}
	e.Status = 2 // all of them are about configurations
	e.Text, e.Remedies = at.format(call.Args[from+1], call.Args[from+2:], 0), at.texts(call.Args[from], 0)
	return e, true
}

// hintParameter returns the index of the parameter with the hint of a called function, whose last
// parameters are a hint, a format and its arguments, or -1.
func (at scope) hintParameter(call *ast.CallExpr) int {
	declared := at.p.funcs[calledName(call)]
	if f, ok := call.Fun.(*ast.SelectorExpr); ok {
		if id, ok := f.X.(*ast.Ident); ok {
			if p := at.imported(id.Name); p != nil {
				declared = p.funcs[f.Sel.Name]
			}
		}
		if len(declared) == 0 && f.Sel.Name == "Add" {
			if p := at.imported("schema"); p != nil {
				declared = p.funcs["Add"]
			}
		}
	}
	for _, fn := range declared {
		var names []string
		for _, field := range fn.Type.Params.List {
			for _, name := range field.Names {
				names = append(names, name.Name)
			}
		}
		if n := len(names); n >= 3 && names[n-2] == "format" && (names[n-3] == "try" || names[n-3] == "hint") {
			return n - 3
		}
	}
	return -1
}

// literal returns the error of a literal with fields for the message and the hint.
func (at scope) literal(lit *ast.CompositeLit) (Error, bool) {
	e := Error{Package: at.p.path, Status: 1}
	if at.readsInput() {
		e.Status = 2
	}
	if id, ok := lit.Type.(*ast.ArrayType); ok && isNamed(id.Elt, "symptom") || lit.Type == nil {
		if len(lit.Elts) == 4 { // {pattern, cause, message, try}
			e.Text, e.Remedies = at.text(lit.Elts[2], 0), at.texts(lit.Elts[3], 0)
			return e, at.p.path == "internal/artifact/build"
		}
	}
	for _, element := range lit.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			return e, false
		}
		switch key, _ := pair.Key.(*ast.Ident); {
		case key == nil:
		case key.Name == "Message" || key.Name == "text":
			e.Text = at.text(pair.Value, 0)
		case key.Name == "Try" || key.Name == "hint":
			e.Remedies = at.texts(pair.Value, 0)
		}
	}
	return e, e.Text != "" && len(e.Remedies) > 0
}

// readsInput reports whether all errors of the package are about the input.
func (at scope) readsInput() bool {
	return strings.HasPrefix(at.p.path, "profiles") || at.p.path == "versions" || at.p.path == "api/v1alpha1"
}

// typed returns the errors of a type with the method Hint.
func (at scope) typed(hint *ast.FuncDecl) []Error {
	e := Error{Package: at.p.path, Status: 1}
	if at.readsInput() {
		e.Status = 2
	}
	for name, status := range map[string]int{"Invalid": 2, "CheckFailed": 3} {
		if at.method(hint, name) != nil {
			e.Status = status
		}
	}
	if described := at.method(hint, "Error"); described != nil {
		e.Text = at.s.scopeOf(at.p, described).described(described)
	}
	var byKey []Error
	ast.Inspect(hint.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CaseClause:
			for _, statement := range n.Body {
				r, ok := statement.(*ast.ReturnStmt)
				if !ok {
					continue
				}
				when := "otherwise"
				if len(n.List) > 0 {
					when = at.text(n.List[0], 0)
				}
				e.Remedies = append(e.Remedies, when+": "+at.text(r.Results[0], 0))
			}
			return false
		case *ast.ReturnStmt:
			if index, ok := n.Results[0].(*ast.IndexExpr); ok {
				byKey = at.byKey(e, index)
				return false
			}
			e.Remedies = append(e.Remedies, at.texts(n.Results[0], 0)...)
		}
		return true
	})
	return append(byKey, e)
}

// byKey returns an error for each entry of a map of hints, whose key is part of the message.
func (at scope) byKey(e Error, index *ast.IndexExpr) []Error {
	id, ok := index.X.(*ast.Ident)
	if !ok {
		return nil
	}
	table, ok := at.p.values[id.Name].(*ast.CompositeLit)
	if !ok {
		return nil
	}
	var all []Error
	for _, element := range table.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		one := e
		one.Text = strings.ReplaceAll(e.Text, placeholder(index.Index), at.text(pair.Key, 0))
		one.Remedies = at.texts(pair.Value, 0)
		all = append(all, one)
	}
	return all
}

// described returns the first text that the method Error of a type formats or returns.
func (at scope) described(method *ast.FuncDecl) string {
	found := ""
	ast.Inspect(method.Body, func(n ast.Node) bool {
		if found != "" {
			return false
		}
		switch n := n.(type) {
		case *ast.CallExpr:
			if calledName(n) == "Fprintf" && len(n.Args) > 1 {
				found = at.format(n.Args[1], n.Args[2:], 0)
			}
		case *ast.ReturnStmt:
			if text := at.text(n.Results[0], 0); strings.ContainsFunc(text, unicode.IsLower) {
				found = text
			}
		}
		return true
	})
	return found
}

// method returns the method of a name of the type that another method has.
func (at scope) method(of *ast.FuncDecl, name string) *ast.FuncDecl {
	for _, fn := range at.p.funcs[name] {
		if fn.Recv != nil && receiver(fn) == receiver(of) {
			return fn
		}
	}
	return nil
}

func receiver(fn *ast.FuncDecl) string {
	t := fn.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}
