// Package messages reads the findings of pmk-sched from its source, with their messages and
// remedies. docs/findings.md is made of them.
package messages

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Source is the parsed source of the module, without tests.
type Source struct {
	packages map[string]*pkg
}

// pkg is one package.
type pkg struct {
	path   string // relative to the module: internal/deploy
	files  []*ast.File
	values map[string]ast.Expr // constants and variables with one value
	funcs  map[string][]*ast.FuncDecl
}

// Parse parses the packages below directories of a module. root is the directory of the module.
func Parse(root string, dirs ...string) (*Source, error) {
	s := &Source{packages: map[string]*pkg{}}
	for _, dir := range dirs {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && entry.Name() == "testdata":
				return fs.SkipDir
			case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			at, err := filepath.Rel(root, filepath.Dir(path))
			if err != nil {
				return err
			}
			s.add(filepath.ToSlash(at), file)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("parse %s: %w", dir, err)
		}
	}
	return s, nil
}

func (s *Source) add(path string, file *ast.File) {
	p := s.packages[path]
	if p == nil {
		p = &pkg{path: path, values: map[string]ast.Expr{}, funcs: map[string][]*ast.FuncDecl{}}
		s.packages[path] = p
	}
	p.files = append(p.files, file)
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			p.funcs[d.Name.Name] = append(p.funcs[d.Name.Name], d)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok && len(v.Names) == len(v.Values) {
					for i, name := range v.Names {
						p.values[name.Name] = v.Values[i]
					}
				}
			}
		}
	}
}

// scope is the place of an expression.
type scope struct {
	s    *Source
	p    *pkg
	file *ast.File
	fn   *ast.FuncDecl // nil at the level of the package
	busy []string      // variables whose values are being read
}

// inspect calls visit for each node of the package, in the order of the files.
func (s *Source) inspect(p *pkg, visit func(scope, ast.Node)) {
	for _, file := range p.files {
		for _, decl := range file.Decls {
			fn, _ := decl.(*ast.FuncDecl)
			at := scope{s: s, p: p, file: file, fn: fn}
			ast.Inspect(decl, func(n ast.Node) bool {
				if n != nil {
					visit(at, n)
				}
				return true
			})
		}
	}
}

// imported returns the package of the module that an identifier names in a file, or nil.
func (at scope) imported(name string) *pkg {
	for _, spec := range at.file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		if spec.Name != nil && spec.Name.Name != name || spec.Name == nil && !strings.HasSuffix("/"+path, "/"+name) {
			continue
		}
		if _, below, ok := strings.Cut(path, "/pmk-sched/pmk-sched/"); ok {
			return at.s.packages[below]
		}
	}
	return nil
}

// scopeOf returns the scope of a function of a package.
func (s *Source) scopeOf(p *pkg, fn *ast.FuncDecl) scope {
	for _, file := range p.files {
		if file.Pos() <= fn.Pos() && slices.Contains(file.Decls, ast.Decl(fn)) {
			return scope{s: s, p: p, file: file, fn: fn}
		}
	}
	return scope{s: s, p: p, fn: fn}
}
