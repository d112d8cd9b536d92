package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pmk-sched/pmk-sched/versions"
)

// Modules that the tables come from.
const (
	kubernetes    = "k8s.io/kubernetes"
	staging       = "k8s.io/kube-scheduler"
	componentBase = "k8s.io/component-base"
	apiserver     = "k8s.io/apiserver"
	clientGo      = "k8s.io/client-go"
)

func modules() []string {
	return []string{kubernetes, staging, componentBase, apiserver, clientGo, apiextensions, componentHelpers}
}

// source is a release's Go source. If the release does not have a file or a name, its methods
// return empty results: the difference to the table is the finding.
type source struct {
	release versions.Release
	dirs    map[string]string // of modules, by path
	parsed  map[string]*ast.File
}

// path returns the path of a file or directory by its import path, or "" if the module is missing.
func (s *source) path(name string) string {
	for module, dir := range s.dirs {
		if rest, found := strings.CutPrefix(name+"/", module+"/"); found {
			return filepath.Join(dir, filepath.FromSlash(rest))
		}
	}
	return ""
}

func (s *source) exists(name string) bool {
	file := s.path(name)
	_, err := os.Stat(file)
	return file != "" && err == nil
}

// text returns a file, or "" if it does not exist.
func (s *source) text(name string) string {
	text, err := os.ReadFile(s.path(name))
	if err != nil {
		return ""
	}
	return string(text)
}

// names returns the names of a directory's files and directories.
func (s *source) names(dir string) []string {
	entries, err := os.ReadDir(s.path(dir))
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// file returns a parsed file. It is empty if it does not exist or is not Go.
func (s *source) file(name string) *ast.File {
	if s.parsed[name] == nil {
		file, err := parser.ParseFile(token.NewFileSet(), s.path(name), nil, parser.SkipObjectResolution)
		if err != nil {
			file = &ast.File{Name: ast.NewIdent("missing")}
		}
		s.parsed[name] = file
	}
	return s.parsed[name]
}

// files returns a package's parsed files, without its tests.
func (s *source) files(pkg string) []*ast.File {
	var files []*ast.File
	for _, name := range s.names(pkg) {
		if strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			files = append(files, s.file(path.Join(pkg, name)))
		}
	}
	return files
}

// everyText returns the text of all Go files in a directory and below, without tests.
func (s *source) everyText(dir string) string {
	var all strings.Builder
	root := s.path(dir)
	if root == "" {
		return ""
	}
	_ = filepath.WalkDir(root, func(file string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go") {
			if text, err := os.ReadFile(file); err == nil {
				all.Write(text)
			}
		}
		return nil
	})
	return all.String()
}

// matches returns each match's first group, sorted and without duplicates.
func matches(text, pattern string) []string {
	var found []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	return unique(found)
}

func unique(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}

// constant returns a package's constant or variable: a literal, or another constant that it names.
func (s *source) constant(pkg, name string) string {
	for _, file := range s.files(pkg) {
		for _, decl := range file.Decls {
			general, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range general.Specs {
				value, ok := spec.(*ast.ValueSpec)
				if !ok {
					continue
				}
				for i, declared := range value.Names {
					if declared.Name == name && i < len(value.Values) {
						return s.value(pkg, file, value.Values[i])
					}
				}
			}
		}
	}
	return ""
}

// value returns the string or truth value of an expression in a package's file, as text.
func (s *source) value(pkg string, file *ast.File, expr ast.Expr) string {
	switch e := expr.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		if err != nil {
			return e.Value
		}
		return text
	case *ast.Ident:
		if e.Name == "true" || e.Name == "false" {
			return e.Name
		}
		return s.constant(pkg, e.Name)
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok {
			return s.constant(imported(file, x.Name), e.Sel.Name)
		}
	}
	return ""
}

// imported returns a name's import path in a file.
func imported(file *ast.File, name string) string {
	for _, spec := range file.Imports {
		importPath, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		if spec.Name != nil && spec.Name.Name == name || spec.Name == nil && path.Base(importPath) == name {
			return importPath
		}
	}
	return ""
}

// structs returns a package's struct types by name.
func (s *source) structs(pkg string) map[string]*ast.StructType {
	found := map[string]*ast.StructType{}
	for _, file := range s.files(pkg) {
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if t, ok := spec.Type.(*ast.StructType); ok {
					found[spec.Name.Name] = t
				}
			}
			return true
		})
	}
	return found
}

// jsonFields returns the JSON names of a struct's fields, sorted, without embedded ones.
func jsonFields(t *ast.StructType) []string {
	var names []string
	if t == nil {
		return nil
	}
	for _, field := range t.Fields.List {
		if field.Tag == nil || len(field.Names) == 0 {
			continue
		}
		names = append(names, matches(field.Tag.Value, `json:"([^",]+)`)...)
	}
	return unique(names)
}

// methods returns the method names that a package declares for each receiver type.
func (s *source) methods(pkg string) map[string][]string {
	found := map[string][]string{}
	for _, file := range s.files(pkg) {
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Recv == nil || len(f.Recv.List) == 0 {
				continue
			}
			receiver := f.Recv.List[0].Type
			if star, ok := receiver.(*ast.StarExpr); ok {
				receiver = star.X
			}
			if name, ok := receiver.(*ast.Ident); ok {
				found[name.Name] = append(found[name.Name], f.Name.Name)
			}
		}
	}
	return found
}
