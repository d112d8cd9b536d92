package plugins

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	gobuild "go/build"
	"go/parser"
	"go/scanner"
	"go/token"
	goversion "go/version"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// pluginPackage is one package of a plugin's module, parsed and not type-checked.
type pluginPackage struct {
	module *pluginModule
	// path is the import path and dir the directory in the module.
	path, dir string
	files     *token.FileSet
	parsed    []sourceFile
}

type sourceFile struct {
	*ast.File
	scope scope
}

// method is a method of a plugin's type, or of any other type in its package.
type method struct {
	name, text string
	at         token.Position
}

// Platform selects a package's files by their build constraints.
type Platform struct {
	OS, Arch string
	Tags     []string
	// Go is the compiler's version.
	Go string

	cgo bool
}

// matches reports whether a file is compiled.
func (p Platform) matches(name string, data []byte) (bool, error) {
	c := gobuild.Context{
		GOOS: p.OS, GOARCH: p.Arch, Compiler: "gc", CgoEnabled: p.cgo, BuildTags: p.Tags, ReleaseTags: releaseTags(p.Go),
		OpenFile: func(string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil },
	}
	return c.MatchFile("", name)
}

// releaseTags are the build tags for a Go version: go1.1 up to its minor.
func releaseTags(version string) []string {
	minor, _ := strconv.Atoi(strings.TrimPrefix(goversion.Lang("go"+version), "go1."))
	var tags []string
	for m := 1; m <= minor; m++ {
		tags = append(tags, fmt.Sprintf("go1.%d", m))
	}
	return tags
}

// parsePackage parses the files in one directory of a module.
func parsePackage(m *pluginModule, dir string, p Platform) (*pluginPackage, error) {
	pkg := &pluginPackage{module: m, dir: dir, path: path.Join(m.path, dir), files: token.NewFileSet()}
	shown := m.shown(dir)
	var wrong scanner.ErrorList
	var cgo []string
	names := m.sources(dir)
	for _, name := range names {
		if ok, err := p.matches(path.Base(name), m.files[name]); err != nil || !ok {
			continue
		}
		file, err := parser.ParseFile(pkg.files, m.shown(name), m.files[name],
			parser.SkipObjectResolution|parser.ParseComments)
		var list scanner.ErrorList
		if errors.As(err, &list) {
			wrong = append(wrong, list...)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("parse plugin %s: %w", shown, err)
		}
		if usesC(file) {
			cgo = append(cgo, m.shown(name))
			continue
		}
		pkg.parsed = append(pkg.parsed, sourceFile{file, fileScope(pkg.path, file)})
	}
	switch {
	case len(wrong) > 0:
		wrong.Sort()
		return nil, fmt.Errorf("parse plugin %s:\n  | %s", shown, strings.ReplaceAll(errorLines(wrong), "\n", "\n  | "))
	case len(cgo) > 0 && !m.hasFallback(dir, p):
		return nil, problem.Invalidf(
			"write it without C, or provide another file with `//go:build !cgo`",
			"plugin %s: %s imports \"C\", and schedulers are built without cgo (CGO_ENABLED=0): their image has no C library",
			shown, strings.Join(cgo, ", "))
	case len(pkg.parsed) == 0 && len(names) > 0:
		return nil, problem.Invalidf("see the //go:build lines and the names of its files",
			"plugin %s: build constraints exclude all its Go files", shown)
	case len(pkg.parsed) == 0:
		return nil, problem.Invalidf(m.packagesHint(), "plugin %s: no Go files", shown)
	}
	return pkg, nil
}

// usesC reports whether a file needs cgo: without it the go command leaves the file out.
func usesC(file *ast.File) bool {
	return slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"C"` })
}

// hasFallback reports whether a directory has a file that is compiled only without cgo.
func (m *pluginModule) hasFallback(dir string, p Platform) bool {
	with := p
	with.cgo = true
	for _, name := range m.sources(dir) {
		without, err := p.matches(path.Base(name), m.files[name])
		if matched, withErr := with.matches(path.Base(name), m.files[name]); err == nil && withErr == nil && without &&
			!matched {
			return true
		}
	}
	return false
}

// errorLines returns the first errors, one per line, as a compiler prints them.
func errorLines(list scanner.ErrorList) string {
	const limit = 10
	var lines []string
	for i, e := range list {
		if i == limit {
			lines = append(lines, fmt.Sprintf("and %d more", len(list)-limit))
			break
		}
		lines = append(lines, e.Error())
	}
	return strings.Join(lines, "\n")
}

// function finds a function of the package that has no receiver.
func (s *pluginPackage) function(name string) (*ast.FuncDecl, scope, bool) {
	for _, f := range s.parsed {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == name {
				return fn, f.scope, true
			}
		}
	}
	return nil, scope{}, false
}

// spec finds the declaration of a type, constant or variable.
func (s *pluginPackage) spec(name string) (ast.Spec, token.Token, scope) {
	for _, f := range s.parsed {
		for _, d := range f.Decls {
			general, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range general.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					if spec.Name.Name == name {
						return spec, general.Tok, f.scope
					}
				case *ast.ValueSpec:
					if slices.ContainsFunc(spec.Names, func(n *ast.Ident) bool { return n.Name == name }) {
						return spec, general.Tok, f.scope
					}
				}
			}
		}
	}
	return nil, token.ILLEGAL, scope{}
}

// methods returns the methods that are declared on a type, or on every type if receiver is empty.
func (s *pluginPackage) methods(receiver string) []method {
	var all []method
	for _, f := range s.parsed {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || len(fn.Recv.List) != 1 ||
				receiver != "" && receiverName(fn.Recv.List[0].Type) != receiver {
				continue
			}
			all = append(all, method{fn.Name.Name, f.scope.signature(fn.Type), s.files.Position(fn.Name.Pos())})
		}
	}
	return all
}

func receiverName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiverName(e.X)
	case *ast.ParenExpr:
		return receiverName(e.X)
	case *ast.IndexExpr:
		return receiverName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
