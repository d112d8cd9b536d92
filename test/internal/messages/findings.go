package messages

import (
	"go/ast"
	"slices"
	"strings"
	"unicode"
)

// Finding is a kind of finding, with a code that does not change.
type Finding struct {
	Code string
	// Meaning is the description of the code.
	Meaning string
	// Texts and Remedies are the messages of the code and their hints.
	Texts, Remedies []string
}

// add adds a message with its hints, each once.
func (f *Finding) add(text string, remedies []string) {
	text = strings.Join(strings.Fields(text), " ")
	if strings.ContainsFunc(text, unicode.IsLower) && !slices.Contains(f.Texts, text) {
		f.Texts = append(f.Texts, text)
	}
	for _, r := range remedies {
		if strings.ContainsFunc(r, unicode.IsLower) && !slices.Contains(f.Remedies, r) {
			f.Remedies = append(f.Remedies, r)
		}
	}
}

// codes returns the constants of a type of a package in the order of their declaration, with the
// meaning from their comments, "Name: meaning".
func (s *Source) codes(path, typeName string) (list []*Finding, byName map[string]*Finding) {
	byName = map[string]*Finding{}
	p := s.packages[path]
	s.inspect(p, func(at scope, n ast.Node) {
		v, ok := n.(*ast.ValueSpec)
		if !ok || !isNamed(v.Type, typeName) || len(v.Values) != 1 {
			return
		}
		f := &Finding{Code: at.text(v.Values[0], 0)}
		_, f.Meaning, _ = strings.Cut(strings.Join(strings.Fields(v.Doc.Text()), " "), ": ")
		list, byName[v.Names[0].Name] = append(list, f), f
	})
	return list, byName
}

// StatusFindings returns the findings of status.
func (s *Source) StatusFindings() []*Finding {
	const health = "internal/deploy/health"
	list, byName := s.codes(health, "Code")
	s.inspect(s.packages[health], func(at scope, n ast.Node) {
		if call, ok := n.(*ast.CallExpr); ok && calledName(call) == "finding" && len(call.Args) > 2 {
			if f := byName[name(call.Args[0])]; f != nil {
				f.add(at.format(call.Args[2], call.Args[3:], 0), at.texts(call.Args[1], 0))
			}
		}
	})
	s.inspect(s.packages["internal/replace"], func(at scope, n ast.Node) {
		if fields := fieldsOf(n); fields["Code"] != nil && byName[name(fields["Code"])] != nil {
			f := byName[name(fields["Code"])]
			if fields["Text"] != nil {
				f.add(at.text(fields["Text"], 0), at.texts(fields["Hint"], 0))
			}
		}
	})
	return list
}

// Causes returns the causes of explain.
func (s *Source) Causes() []*Finding {
	const explain = "internal/cluster/explain"
	list, byName := s.codes(explain, "Cause")
	s.inspect(s.packages[explain], func(at scope, n ast.Node) {
		switch n := n.(type) {
		case *ast.CompositeLit:
			fields := fieldsOf(n)
			if f := byName[name(fields["Cause"])]; f != nil && fields["Text"] != nil {
				f.add(at.text(fields["Text"], 0), at.remedies(fields["Fix"]))
			}
			if n.Type == nil && len(n.Elts) == 3 && at.fn != nil && at.fn.Name.Name == "knownReasons" {
				if f := byName[name(n.Elts[1])]; f != nil {
					f.add(at.text(n.Elts[0], 0)+" "+anything, nil)
				}
			}
		case *ast.CaseClause: // of Finding.detail
			for _, label := range n.List {
				if f := byName[name(label)]; f != nil && len(n.Body) == 1 {
					f.fixes(at, n.Body[0])
				}
			}
		}
	})
	return list
}

// fixes adds the fix of a statement f.add(text, fix).
func (f *Finding) fixes(at scope, statement ast.Stmt) {
	if s, ok := statement.(*ast.ExprStmt); ok {
		if call, ok := s.X.(*ast.CallExpr); ok && calledName(call) == "add" && len(call.Args) == 2 {
			f.add("", at.remedies(call.Args[1]))
		}
	}
}

// remedies returns the texts of an expression, which may be nil.
func (at scope) remedies(e ast.Expr) []string {
	if e == nil {
		return nil
	}
	return at.texts(e, 0)
}

// Checks returns the checks that precede a deployment.
func (s *Source) Checks() []*Finding {
	const preflight = "internal/deploy/preflight"
	var list []*Finding
	s.inspect(s.packages[preflight], func(at scope, n ast.Node) {
		fields := fieldsOf(n)
		if fields["Name"] == nil || fields["Description"] == nil || fields["Run"] == nil {
			return
		}
		f := &Finding{Code: at.text(fields["Name"], 0), Meaning: at.text(fields["Description"], 0)}
		ast.Inspect(fields["Run"], func(n ast.Node) bool {
			if method, ok := n.(*ast.SelectorExpr); ok {
				for _, fn := range at.p.funcs[method.Sel.Name] {
					f.failures(at.s.scopeOf(at.p, fn))
				}
			}
			return true
		})
		list = append(list, f)
	})
	return list
}

// failures adds the errors with hints of a function.
func (f *Finding) failures(at scope) {
	ast.Inspect(at.fn.Body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			f.failure(at, call)
		}
		return true
	})
}

// failure adds the error that a call of package problem returns, if it is one.
func (f *Finding) failure(at scope, call *ast.CallExpr) {
	called, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !isNamed(called.X, "problem") || len(call.Args) < 2 {
		return
	}
	switch called.Sel.Name {
	case "WithHint":
		f.add(at.text(call.Args[0], 0), at.texts(call.Args[1], 0))
	case "Errorf", "Invalidf":
		f.add(at.format(call.Args[1], call.Args[2:], 0), at.texts(call.Args[0], 0))
	}
}

// Warnings returns the warnings of detect.
func (s *Source) Warnings() []string {
	var list []string
	s.inspect(s.packages["internal/cluster/inspect"], func(at scope, n ast.Node) {
		call, ok := n.(*ast.CallExpr)
		switch {
		case !ok:
		case calledName(call) == "warn" && len(call.Args) > 0:
			list = append(list, at.format(call.Args[0], call.Args[1:], 0))
		case calledName(call) == "warnUnread" && len(call.Args) == 3:
			list = append(list, at.text(call.Args[1], 0)+": "+anything+"; "+at.text(call.Args[2], 0))
		}
	})
	list = slices.DeleteFunc(list, func(text string) bool { return !strings.ContainsFunc(text, unicode.IsLower) })
	slices.Sort(list)
	return slices.Compact(list)
}

// fieldsOf returns the fields of a literal by their names, or nil.
func fieldsOf(n ast.Node) map[string]ast.Expr {
	lit, ok := n.(*ast.CompositeLit)
	if !ok {
		return nil
	}
	fields := map[string]ast.Expr{}
	for _, element := range lit.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			fields[name(pair.Key)] = pair.Value
		}
	}
	return fields
}

// name returns the name of an identifier or of its last part, or "".
func name(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}
