package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// modulePath is the packages' module.
const modulePath = "github.com/pmk-sched/pmk-sched/"

// pkg is the required part of a package's `go list -json` output, and the content read from its
// files.
type pkg struct {
	ImportPath, Dir, Export                     string
	GoFiles, Imports, TestGoFiles, XTestGoFiles []string

	files   *token.FileSet
	read    []*file
	mutants []*mutant
	places  int // the highest number of a mutant
}

func (p *pkg) path() string   { return strings.TrimPrefix(p.ImportPath, modulePath) }
func (p *pkg) hasTests() bool { return len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 }

// file is a file in a package.
type file struct {
	name    string
	text    string
	syntax  *ast.File
	imports map[string]string // name in the file, empty for the package's own, by import path
}

// packages are the packages whose code is changed, and the importers of each.
type packages struct {
	chosen    []*pkg
	importers map[string][]*pkg // packages with unit tests, by import path
}

// doesIO matches what a package below internal/ does not import if its unit tests can assert all
// that it does: clients, and the packages that run something on a cluster for their callers.
var doesIO = regexp.MustCompile(`^(os|os/.*|net|net/http|io/ioutil|syscall|k8s\.io/client-go(/.*)?|` +
	modulePath + `internal/(base/steps|cluster/session))$`)

// readPackages lists the module's packages and finds the mutants in packages that match the
// patterns. Packages below internal/ that do I/O are left out.
func readPackages(ctx context.Context, patterns []string) (*packages, error) {
	all, err := list(ctx, "./...")
	if err != nil {
		return nil, err
	}
	p := &packages{importers: map[string][]*pkg{}}
	isProgram := func(one *pkg) bool { return strings.HasPrefix(one.path(), "cmd/") }
	programs := slices.DeleteFunc(slices.Clone(all), func(one *pkg) bool { return !isProgram(one) })
	// The tests of the programs take longest.
	for _, one := range append(slices.DeleteFunc(all, isProgram), programs...) {
		// The tests below test/ need more than the code.
		if one.hasTests() && !strings.HasPrefix(one.path(), "test/") {
			for _, imported := range one.Imports {
				p.importers[imported] = append(p.importers[imported], one)
			}
		}
	}
	if p.chosen, err = list(ctx, patterns...); err != nil {
		return nil, err
	}
	p.chosen = slices.DeleteFunc(p.chosen, func(one *pkg) bool {
		return !one.hasTests() && len(p.importers[one.ImportPath]) == 0 ||
			strings.HasPrefix(one.path(), "internal/") && slices.ContainsFunc(one.Imports, doesIO.MatchString)
	})
	if len(p.chosen) == 0 {
		return nil, fmt.Errorf("no package of %s has unit tests that can assert all that it does", strings.Join(patterns, " "))
	}
	exports := map[string]string{}
	deps, err := list(ctx, append([]string{"-export", "-deps"}, patterns...)...)
	for _, one := range deps {
		exports[one.ImportPath] = one.Export
	}
	for _, one := range p.chosen {
		err = errors.Join(err, one.findMutants(exports))
	}
	return p, err
}

func list(ctx context.Context, args ...string) (all []*pkg, err error) {
	const fields = "-json=ImportPath,Dir,GoFiles,Imports,TestGoFiles,XTestGoFiles,Export"
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", fields}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages %s: %w: %s", strings.Join(args, " "), err, stderr.Bytes())
	}
	for decoder := json.NewDecoder(bytes.NewReader(text)); ; {
		one := &pkg{}
		if err := decoder.Decode(one); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("read the list of packages: %w", err)
		}
		all = append(all, one)
	}
}

// findMutants reads the files of a package and collects its mutants. exports are the files with the
// types of each package that it imports.
func (p *pkg) findMutants(exports map[string]string) error {
	p.files = token.NewFileSet()
	var files []*file
	var syntax []*ast.File
	for _, name := range p.GoFiles {
		text, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(p.files, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("parse %s: %w", name, err)
		}
		files = append(files, &file{name: name, text: string(text), syntax: parsed, imports: importNames(parsed)})
		syntax = append(syntax, parsed)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	lookup := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	config := types.Config{Importer: importer.ForCompiler(p.files, "gc", lookup)}
	if _, err := config.Check(p.ImportPath, p.files, syntax, info); err != nil {
		return fmt.Errorf("check the types of %s: %w", p.path(), err)
	}
	p.read = files
	for _, one := range files {
		if ast.IsGenerated(one.syntax) {
			continue
		}
		for _, declaration := range one.syntax.Decls {
			f := finder{pkg: p, file: one, info: info}
			if function, ok := declaration.(*ast.FuncDecl); ok {
				f.function = function.Name.Name
			}
			ast.Inspect(declaration, f.visit)
			p.mutants = append(p.mutants, f.found...)
		}
	}
	for i, m := range p.mutants {
		m.number = i + 1
	}
	p.places = len(p.mutants)
	return nil
}

func importNames(f *ast.File) map[string]string {
	names := map[string]string{}
	for _, spec := range f.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // the parser has seen to it
		}
		names[path] = ""
		if spec.Name != nil {
			names[path] = spec.Name.Name
		}
	}
	return names
}
