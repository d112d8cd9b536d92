package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
)

// mutant is one change to one file.
type mutant struct {
	pkg      *pkg
	number   int // in the package, from 1
	file     *file
	function string // where it is, empty for a variable of the package
	// begin and end are the bytes that differ, and with is what replaces them.
	begin, end int
	with       string
	site
}

// site is the expression or statement that stands in two versions in the compiled file.
type site struct {
	from, to int
	kind     kind
	typeName string // of a value
	mutated  string
}

// kind says how a site is written in two versions.
type kind int

const (
	condition kind = iota // a bool
	value                 // an expression of another type
	statement             // that is left out
	jump                  // continue or break
)

// key identifies a mutant in equivalent.txt. It has no line number, so that it stays valid when
// other lines change.
func (m *mutant) key() string {
	text := m.file.text
	begin := strings.LastIndexByte(text[:m.begin], '\n') + 1
	end := len(text)
	if i := strings.IndexByte(text[m.end:], '\n'); i >= 0 {
		end = m.end + i
	}
	line := text[begin:m.begin] + "«" + text[m.begin:m.end] + "→" + m.with + "»" + text[m.end:end]
	where := m.pkg.path() + "/" + m.file.name
	if m.function != "" {
		where += " " + m.function
	}
	return where + ": " + strings.Join(strings.Fields(line), " ")
}

// finder collects a file's mutants.
type finder struct {
	pkg      *pkg
	file     *file
	info     *types.Info
	function string
	endless  int // loops without a condition around the place: they must not end with break
	found    []*mutant
}

func (f *finder) offset(at token.Pos) int { return f.pkg.files.Position(at).Offset }

// add collects a mutant: the bytes from begin to end of the expression or statement n are replaced.
func (f *finder) add(n ast.Node, k kind, begin, end token.Pos, with string) {
	m := &mutant{
		pkg: f.pkg, file: f.file, function: f.function, begin: f.offset(begin), end: f.offset(end), with: with,
		site: site{from: f.offset(n.Pos()), to: f.offset(n.End()), kind: k},
	}
	m.mutated = f.file.text[m.from:m.begin] + with + f.file.text[m.end:m.to]
	if e, ok := n.(ast.Expr); ok {
		name, written := f.typeName(e)
		if k == value && !written || k == condition && name != "bool" && name != "untyped bool" {
			return
		}
		m.typeName = name
	}
	f.found = append(f.found, m)
}

// typeName returns an expression's type as the file writes it. It is not ok if the file cannot
// write it.
func (f *finder) typeName(e ast.Expr) (name string, ok bool) {
	t := f.info.TypeOf(e)
	if t == nil {
		return "", false
	}
	basic, isBasic := t.(*types.Basic)
	ok = !isBasic || basic.Info()&types.IsUntyped == 0
	name = types.TypeString(t, func(p *types.Package) string {
		if p.Path() == f.pkg.ImportPath {
			return ""
		}
		as, imported := f.file.imports[p.Path()]
		ok = ok && imported
		if as == "" {
			return p.Name()
		}
		return as
	})
	return name, ok
}

// operators are the operators that replace each operator.
var operators = map[token.Token]string{
	token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">", token.EQL: "!=", token.NEQ: "==",
	token.LAND: "||", token.LOR: "&&", token.ADD: "-", token.SUB: "+", token.MUL: "/", token.QUO: "*",
}

// visit collects: conditions that never or always hold, other operators, numbers one higher, other
// truth values, calls and assignments to fields that are left out, min for max, and break for
// continue. Lines of a log are no behaviour, and constants must stay constants.
func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok == token.VAR
	case *ast.ArrayType, *ast.FuncType:
		return false
	case *ast.ForStmt:
		if n.Cond == nil {
			f.endless++
			ast.Inspect(n.Body, f.visit)
			f.endless--
			return false
		}
	case *ast.BlockStmt:
		f.statements(n.List)
	case *ast.CaseClause:
		f.statements(n.Body)
	case *ast.CommClause:
		f.statements(n.Body)
	case *ast.IfStmt:
		f.add(n.Cond, condition, n.Cond.Pos(), n.Cond.End(), "false")
		f.add(n.Cond, condition, n.Cond.Pos(), n.Cond.End(), "true")
	case *ast.BinaryExpr:
		f.binary(n)
	case *ast.IndexExpr:
		f.number(n.Index)
	case *ast.SliceExpr:
		f.number(n.Low)
		f.number(n.High)
	case *ast.CallExpr:
		f.extreme(n)
	case *ast.Ident:
		if (n.Name == "true" || n.Name == "false") && f.info.Types[n].Type == types.Typ[types.Bool] {
			f.add(n, condition, n.Pos(), n.End(), strconv.FormatBool(n.Name == "false"))
		}
	}
	return true
}

func (f *finder) binary(n *ast.BinaryExpr) {
	with, ok := operators[n.Op]
	if !ok {
		return
	}
	k := value
	if n.Op == token.LAND || n.Op == token.LOR || n.Op.Precedence() == token.EQL.Precedence() {
		k = condition
	} else if basic, ok := f.info.TypeOf(n).Underlying().(*types.Basic); !ok || basic.Info()&types.IsString != 0 {
		return
	}
	if k == value && f.info.Types[n].Value != nil && isDuration(f.info.TypeOf(n)) {
		return // such as 5 * time.Second: a time limit
	}
	end := n.OpPos + token.Pos(len(n.Op.String()))
	f.add(n, k, n.OpPos, end, with)
	if n.Op != token.MUL && n.Op != token.QUO {
		f.number(n.X)
		f.number(n.Y)
	}
}

// number collects a number that is one higher.
func (f *finder) number(n ast.Expr) {
	literal, ok := n.(*ast.BasicLit)
	if !ok || literal.Kind != token.INT {
		return
	}
	if number, err := strconv.Atoi(literal.Value); err == nil {
		f.add(n, value, n.Pos(), n.End(), strconv.Itoa(number+1))
	}
}

// extreme collects max for min and min for max.
func (f *finder) extreme(n *ast.CallExpr) {
	name, ok := n.Fun.(*ast.Ident)
	if !ok || !f.info.Types[name].IsBuiltin() {
		return
	}
	if other, ok := map[string]string{"min": "max", "max": "min"}[name.Name]; ok {
		f.add(n, value, name.Pos(), name.End(), other)
	}
}

// statements collects the mutants in a list of statements.
func (f *finder) statements(list []ast.Stmt) {
	for _, one := range list {
		switch n := one.(type) {
		case *ast.ExprStmt:
			if call, ok := n.X.(*ast.CallExpr); ok && !logs(call) {
				f.add(n, statement, n.Pos(), n.End(), "")
			}
		case *ast.AssignStmt:
			if _, ok := n.Lhs[0].(*ast.SelectorExpr); ok && len(n.Lhs) == 1 && n.Tok == token.ASSIGN {
				f.add(n, statement, n.Pos(), n.End(), "")
			}
		case *ast.BranchStmt:
			if n.Tok == token.CONTINUE && n.Label == nil && f.endless == 0 {
				f.add(n, jump, n.Pos(), n.End(), "break")
			}
		}
	}
}

func isDuration(t types.Type) bool {
	named, ok := t.(*types.Named)
	return ok && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == "time"
}

// logs reports whether a call writes a log line or a note for the terminal, or panics.
func logs(call *ast.CallExpr) bool {
	if name, ok := call.Fun.(*ast.Ident); ok {
		return name.Name == "panic"
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	return ok && slices.Contains([]string{"Debug", "Info", "Warn", "Error", "Note"}, method.Sel.Name)
}

// write returns a file's text in which each mutant is switched on by its number.
func write(text string, mutants []*mutant) string {
	sorted := slices.Clone(mutants)
	// The outer site comes first; one site's mutants stay together.
	slices.SortStableFunc(sorted, func(a, b *mutant) int {
		if a.from != b.from {
			return a.from - b.from
		}
		return b.to - a.to
	})
	var b strings.Builder
	at := 0
	for len(sorted) > 0 {
		outer := sorted[0].site
		n := slices.IndexFunc(sorted, func(m *mutant) bool { return m.from >= outer.to })
		if n < 0 {
			n = len(sorted)
		}
		b.WriteString(text[at:outer.from])
		b.WriteString(writeSite(text, sorted[:n]))
		at, sorted = outer.to, sorted[n:]
	}
	return b.String() + text[at:]
}

// writeSite returns the text of the outermost site for sorted mutants.
func writeSite(text string, mutants []*mutant) string {
	outer := mutants[0].site
	n := slices.IndexFunc(mutants, func(m *mutant) bool { return m.from != outer.from || m.to != outer.to })
	if n < 0 {
		n = len(mutants)
	}
	within := make([]*mutant, 0, len(mutants)-n)
	for _, m := range mutants[n:] {
		inner := *m
		inner.from, inner.to = m.from-outer.from, m.to-outer.from
		within = append(within, &inner)
	}
	original := write(text[outer.from:outer.to], within)
	for _, m := range mutants[:n] {
		original = m.switched(original)
	}
	return original
}

func (m *mutant) switched(original string) string {
	switch m.kind {
	case condition:
		return fmt.Sprintf("(mutantOn(%d) && (%s) || !mutantOn(%[1]d) && (%[3]s))", m.number, m.mutated, original)
	case value:
		return fmt.Sprintf("(func() %s { if mutantOn(%d) { return %s }; return %s }())",
			m.typeName, m.number, m.mutated, original)
	case jump:
		return fmt.Sprintf("if mutantOn(%d) { %s }; %s", m.number, m.mutated, original)
	default:
		return fmt.Sprintf("if !mutantOn(%d) { %s }", m.number, original)
	}
}
