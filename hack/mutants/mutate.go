package main

import (
	"bufio"
	"bytes"
	_ "embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// mutant is one change of one file.
type mutant struct {
	pkg  *pkg
	file string // absolute
	text []byte // of the file
	change
}

func (m *mutant) source() []byte {
	return slices.Concat(m.text[:m.begin], []byte(m.with), m.text[m.end:])
}

// key identifies a mutant in equivalent.txt. It has no line number, so that it stays valid when
// other lines change.
func (m *mutant) key() string {
	begin := bytes.LastIndexByte(m.text[:m.begin], '\n') + 1
	end := len(m.text)
	if i := bytes.IndexByte(m.text[m.end:], '\n'); i >= 0 {
		end = m.end + i
	}
	flat := func(text []byte) string { return strings.Join(strings.Fields(string(text)), " ") }
	line := slices.Concat(m.text[begin:m.begin], []byte("«"), m.text[m.begin:m.end], []byte("→"+m.with+"»"),
		m.text[m.end:end])
	return m.pkg.path() + "/" + filepath.Base(m.file) + ": " + flat(line)
}

// mutantsOf returns the mutants of a package, in the order of its files.
func mutantsOf(p *pkg) (all []mutant, err error) {
	for _, name := range p.GoFiles {
		file := filepath.Join(p.Dir, name)
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, file, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("parse %s: %w", file, err)
		}
		if ast.IsGenerated(parsed) {
			continue
		}
		f := finder{text: text, offset: func(at token.Pos) int { return files.Position(at).Offset }}
		ast.Inspect(parsed, f.visit)
		for _, c := range f.found {
			all = append(all, mutant{p, file, text, c})
		}
	}
	return all, nil
}

// change replaces bytes of a file.
type change struct {
	begin, end int
	with       string
}

// finder collects the changes of a file.
type finder struct {
	text   []byte
	offset func(token.Pos) int
	found  []change
}

func (f *finder) replace(begin, end token.Pos, with string) {
	f.found = append(f.found, change{f.offset(begin), f.offset(end), with})
}

// operators are the operators that replace each operator.
var operators = map[token.Token]string{
	token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">", token.EQL: "!=", token.NEQ: "==",
	token.LAND: "||", token.LOR: "&&", token.ADD: "-", token.SUB: "+", token.MUL: "/", token.QUO: "*",
}

// words are the names that replace each name: values, and functions.
var words = map[string]string{"true": "false", "false": "true", "min": "max", "max": "min"}

// visit collects: conditions that never or always hold, other operators, numbers one higher, other
// truth values, calls and assignments to fields that are left out, min for max, and break for
// continue. Lines of a log are no behaviour.
func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt:
		condition := string(f.text[f.offset(n.Cond.Pos()):f.offset(n.Cond.End())])
		f.replace(n.Cond.Pos(), n.Cond.End(), "false && ("+condition+")")
		f.replace(n.Cond.Pos(), n.Cond.End(), "true || "+condition)
	case *ast.BinaryExpr:
		f.binary(n)
	case *ast.IndexExpr:
		f.number(n.Index)
	case *ast.SliceExpr:
		f.number(n.Low)
		f.number(n.High)
	case *ast.Ident:
		if with, ok := words[n.Name]; ok {
			f.replace(n.Pos(), n.End(), with)
		}
	case *ast.ExprStmt:
		if call, ok := n.X.(*ast.CallExpr); ok && !logs(call) {
			f.replace(n.Pos(), n.End(), "")
		}
	case *ast.BranchStmt:
		if n.Tok == token.CONTINUE && n.Label == nil {
			f.replace(n.Pos(), n.End(), "break")
		}
	case *ast.AssignStmt:
		if _, ok := n.Lhs[0].(*ast.SelectorExpr); ok && len(n.Lhs) == 1 && n.Tok == token.ASSIGN {
			f.replace(n.Pos(), n.End(), "")
		}
	}
	return true
}

func (f *finder) binary(n *ast.BinaryExpr) {
	with, ok := operators[n.Op]
	if !ok || isText(n.X) || isText(n.Y) || n.Op == token.MUL && isDuration(n) {
		return
	}
	f.replace(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), with)
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
	if value, err := strconv.Atoi(literal.Value); err == nil {
		f.replace(n.Pos(), n.End(), strconv.Itoa(value+1))
	}
}

func isText(n ast.Expr) bool {
	literal, ok := n.(*ast.BasicLit)
	return ok && literal.Kind == token.STRING
}

// isDuration reports whether a product is a time such as 5 * time.Second.
func isDuration(n *ast.BinaryExpr) bool {
	unit, ok := n.Y.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	from, ok := unit.X.(*ast.Ident)
	return ok && from.Name == "time"
}

// logs reports whether a call writes a line of a log or a note for the terminal.
func logs(call *ast.CallExpr) bool {
	method, ok := call.Fun.(*ast.SelectorExpr)
	return ok && slices.Contains([]string{"Debug", "Info", "Warn", "Error", "Note"}, method.Sel.Name)
}

//go:embed equivalent.txt
var equivalent string

// readEquivalent returns the reasons of the mutants without an effect, by key. Each line is the
// key, a tab, and the reason.
func readEquivalent() (map[string]string, error) {
	reasons := map[string]string{}
	for lines := bufio.NewScanner(strings.NewReader(equivalent)); lines.Scan(); {
		if lines.Text() == "" || strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		key, reason, ok := strings.Cut(lines.Text(), "\t")
		if !ok || reason == "" {
			return nil, fmt.Errorf("equivalent.txt: no reason in %q", lines.Text())
		}
		reasons[key] = reason
	}
	return reasons, nil
}
