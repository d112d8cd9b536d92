package messages

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/pmk-sched/pmk-sched/internal/base/plural"
)

// anything is the placeholder of a value without a name.
const anything = "…"

// deepest bounds how far values are followed.
const deepest = 6

// texts returns the values that an expression may have as a text, with placeholders for parts that
// depend on the input. A variable of a function has the values of its assignments.
func (at scope) texts(e ast.Expr, depth int) []string {
	if depth > deepest {
		return []string{anything}
	}
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return []string{text}
		}
		return []string{e.Value}
	case *ast.ParenExpr:
		return at.texts(e.X, depth)
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			x, y := at.text(e.X, depth), at.text(e.Y, depth)
			if m, err := strconv.Atoi(x); err == nil {
				if n, err := strconv.Atoi(y); err == nil {
					return []string{strconv.Itoa(m + n)}
				}
			}
			return []string{x + y}
		}
	case *ast.Ident:
		if values := at.assigned(e.Name, depth); len(values) > 0 {
			return values
		}
		if value, ok := at.p.values[e.Name]; ok {
			return scope{s: at.s, p: at.p, file: at.file}.texts(value, depth+1)
		}
	case *ast.SelectorExpr:
		if e.Sel.Name == "NamespaceSystem" { // of metav1
			return []string{"kube-system"}
		}
		if name, ok := e.X.(*ast.Ident); ok {
			if p := at.imported(name.Name); p != nil && p.values[e.Sel.Name] != nil {
				return scope{s: at.s, p: p, file: p.files[0]}.texts(p.values[e.Sel.Name], depth+1)
			}
		}
	case *ast.CallExpr:
		if values := at.called(e, depth); len(values) > 0 {
			return values
		}
	}
	return []string{placeholder(e)}
}

// text returns the first value of an expression.
func (at scope) text(e ast.Expr, depth int) string { return at.texts(e, depth)[0] }

// assigned returns the texts that a function assigns to a variable.
func (at scope) assigned(name string, depth int) []string {
	if at.fn == nil || at.fn.Body == nil || slices.Contains(at.busy, name) {
		return nil
	}
	at.busy = append(slices.Clip(at.busy), name)
	var values []string
	add := func(to, value ast.Expr) {
		if id, ok := to.(*ast.Ident); ok && id.Name == name {
			for _, text := range at.texts(value, depth+1) {
				if strings.ContainsFunc(text, unicode.IsLower) && !slices.Contains(values, text) {
					values = append(values, text)
				}
			}
		}
	}
	ast.Inspect(at.fn.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i := range n.Lhs {
				if len(n.Lhs) == len(n.Rhs) && n.Tok != token.ADD_ASSIGN {
					add(n.Lhs[i], n.Rhs[i])
				}
			}
		case *ast.ValueSpec:
			for i := range n.Values {
				if len(n.Names) == len(n.Values) {
					add(n.Names[i], n.Values[i])
				}
			}
		}
		return true
	})
	return values
}

// called returns the texts of a call: of a function that formats, or of one of the package that
// consists of a return statement.
func (at scope) called(call *ast.CallExpr, depth int) []string {
	switch name := calledName(call); {
	case name == "Count" && len(call.Args) == 2: // of package plural
		return []string{"N" + strings.TrimPrefix(plural.Count(2, at.text(call.Args[1], depth)), "2")}
	case (name == "Command" || name == "command") && len(call.Args) > 0: // of Plan: a command line
		if verb, ok := call.Args[0].(*ast.BasicLit); ok {
			group := ""
			if strings.HasSuffix(at.p.path, "/extenders") {
				group = "extender "
			}
			return []string{"pmk-sched " + group + strings.Trim(verb.Value, `"`) + " --name NAME"}
		}
	case name == "Phrase" && len(call.Args) == 3:
		return []string{"N " + at.text(call.Args[2], depth)}
	case (name == "Sprintf" || name == "Errorf" || name == "New") && len(call.Args) > 0:
		args := call.Args
		if t, ok := call.Fun.(*ast.SelectorExpr); ok && isNamed(t.X, "problem") && len(args) > 1 {
			args = args[1:]
		} else if ok && !isNamed(t.X, "fmt") && !isNamed(t.X, "errors") {
			return nil
		}
		return []string{at.format(args[0], args[1:], depth)}
	default:
		declared := at.p.funcs[name]
		if f, ok := call.Fun.(*ast.SelectorExpr); ok && !at.isReceiver(f.X) {
			return nil
		}
		if len(declared) != 1 || declared[0].Body == nil || len(declared[0].Body.List) != 1 {
			return nil
		}
		if r, ok := declared[0].Body.List[0].(*ast.ReturnStmt); ok && len(r.Results) == 1 {
			if text := at.s.scopeOf(at.p, declared[0]).text(r.Results[0], depth+1); strings.ContainsFunc(text, unicode.IsLower) {
				return []string{text}
			}
		}
	}
	return nil
}

// isReceiver reports whether an expression is the receiver of the method.
func (at scope) isReceiver(e ast.Expr) bool {
	if at.fn == nil || at.fn.Recv == nil || len(at.fn.Recv.List[0].Names) == 0 {
		return false
	}
	return isNamed(e, at.fn.Recv.List[0].Names[0].Name)
}

// verb matches the verbs of package fmt.
var verb = regexp.MustCompile(`%[-+# 0]*(?:\[\d+\])?[\d*]*(?:\.[\d*]+)?[a-zA-Z%]`)

// format returns the text of a format with its arguments.
func (at scope) format(format ast.Expr, args []ast.Expr, depth int) string {
	next := 0
	return verb.ReplaceAllStringFunc(at.text(format, depth), func(v string) string {
		if v == "%%" {
			return "%"
		}
		if strings.HasPrefix(v, "%[") {
			if n, err := strconv.Atoi(v[2:strings.IndexByte(v, ']')]); err == nil {
				next = n - 1
			}
		}
		if next >= len(args) {
			return anything
		}
		arg := args[next]
		next++
		if strings.HasSuffix(v, "q") { // a value that the user gave
			return `"` + placeholder(arg) + `"`
		}
		return at.text(arg, depth+1)
	})
}

// placeholder returns a name for a value: the last part of an expression, as NODE-NAME.
func placeholder(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return upper(e.Name)
	case *ast.SelectorExpr:
		return upper(e.Sel.Name)
	case *ast.IndexExpr:
		return placeholder(e.X)
	case *ast.StarExpr:
		return placeholder(e.X)
	case *ast.UnaryExpr:
		return placeholder(e.X)
	case *ast.SliceExpr:
		return placeholder(e.X)
	case *ast.BinaryExpr:
		return placeholder(e.X)
	case *ast.CallExpr:
		if f, ok := e.Fun.(*ast.SelectorExpr); ok && len(e.Args) == 0 {
			if f.Sel.Name == "String" || f.Sel.Name == "Error" {
				return placeholder(f.X)
			}
			return upper(f.Sel.Name)
		}
		if calledName(e) == "len" {
			return "N"
		}
		if len(e.Args) > 0 {
			return placeholder(e.Args[0])
		}
	}
	return anything
}

// upper returns the name of a placeholder for an identifier: … for errors and for one letter.
func upper(name string) string {
	if name == "HelpName" { // of a command
		return "COMMAND"
	}
	if len(name) < 2 || strings.HasSuffix(strings.ToLower(name), "err") || name == "errs" || name == "format" {
		return anything
	}
	var out []rune
	runes := []rune(name)
	for i, r := range runes {
		if i > 0 && unicode.IsUpper(r) && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			out = append(out, '-')
		}
		out = append(out, unicode.ToUpper(r))
	}
	return string(out)
}

func calledName(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

func isNamed(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}
