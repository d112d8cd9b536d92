package pmksched

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// benchCommand is a command of a document that runs benchmarks.
type benchCommand struct {
	document, text string
	// pattern is the value of -bench, and dir the package.
	pattern, dir string
}

// readBenchCommands returns the commands of the documents.
func readBenchCommands(t *testing.T) (all []benchCommand) {
	t.Helper()
	command := regexp.MustCompile("go test [^`\\n]*-bench (\\S+)[^`\\n]* \\./([a-z/]+)")
	for _, pattern := range []string{"*.md", "docs/*.md", "scheduler/plugins/*/*.md"} {
		documents, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range documents {
			for _, c := range command.FindAllStringSubmatch(read(t, document), -1) {
				all = append(all, benchCommand{document, c[0], strings.Trim(c[1], "'"), c[2]})
			}
		}
	}
	if len(all) == 0 {
		t.Error("the documents have no command with a benchmark")
	}
	return all
}

// Figures of the documents have the command that measures them: the benchmarks and their
// sub-benchmarks exist, and they fail if a claim of the document does not hold.
func TestCommandsOfTheDocumentsSelectBenchmarksThatCheckThem(t *testing.T) {
	sources := map[string]*benchSource{}
	for _, c := range readBenchCommands(t) {
		if sources[c.dir] == nil {
			sources[c.dir] = readBenchSource(t, c.dir)
		}
		s := sources[c.dir]
		selected := s.selected(t, c.pattern)
		if len(selected) == 0 {
			t.Errorf("%s: no benchmark matches: %s", c.document, c.text)
			continue
		}
		checks := slices.ContainsFunc(s.claimsOf(selected), func(x claim) bool { return x.page == c.document })
		if strings.HasPrefix(c.dir, "test/") && !checks {
			t.Errorf("%s: the benchmark checks no claim of this page: %s", c.document, c.text)
		}
	}
}

// A benchmark checks texts that its page has, and the page, or one that it links to, names the
// package.
func TestClaimsOfBenchmarksAreOnTheirPages(t *testing.T) {
	dirs, err := filepath.Glob("test/bench/*")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[claim]bool{}
	for _, dir := range append(dirs, "test/lab/replace") {
		dir = filepath.ToSlash(dir)
		s := readBenchSource(t, dir)
		for _, c := range s.claimsOf(slices.Collect(maps.Keys(s.uses))) {
			if seen[c] {
				continue
			}
			seen[c] = true
			text := read(t, c.page)
			if !strings.Contains(strings.Join(strings.Fields(text), " "), c.text) {
				t.Errorf("%s checks a claim that %s does not have: %s", dir, c.page, c.text)
			}
			if !namesPackage(t, c.page, text, dir) {
				t.Errorf("%s has no command for %s, which checks a claim of it", c.page, dir)
			}
		}
	}
	if len(seen) == 0 {
		t.Error("no benchmark checks a claim")
	}
}

// namesPackage reports whether a page, or one that it links to, names a package.
func namesPackage(t *testing.T, page, text, dir string) bool {
	t.Helper()
	for _, link := range regexp.MustCompile(`\]\(([^):]+\.md)`).FindAllStringSubmatch(text, -1) {
		text += read(t, filepath.Join(filepath.Dir(page), link[1]))
	}
	return regexp.MustCompile(regexp.QuoteMeta(strings.TrimPrefix(dir, "test/")) + `\b`).MatchString(text)
}

// claim is a call of samples.Claim.
type claim struct{ page, text string }

// benchSource is what the test files of a package declare.
type benchSource struct {
	benchmarks map[string]*ast.FuncDecl
	// uses are the identifiers in each function, method and variable, by its name, and claims the
	// claims there.
	uses   map[string][]string
	claims map[string][]claim
	// names are the literals that may be names of sub-benchmarks, also of packages that prepare tests.
	names []string
}

func readBenchSource(t *testing.T, dir string) *benchSource {
	t.Helper()
	s := &benchSource{benchmarks: map[string]*ast.FuncDecl{}, uses: map[string][]string{}, claims: map[string][]claim{}}
	files := parseFiles(t, dir, "*_test.go")
	texts := constants(files)
	for _, file := range files {
		s.names = append(s.names, literals(file)...)
		for _, spec := range file.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			if helper, ours := strings.CutPrefix(imported, modulePath+"/test/"); ours {
				for _, f := range parseFiles(t, "test/"+helper, "*.go") {
					s.names = append(s.names, literals(f)...)
				}
			}
		}
		for _, declaration := range file.Decls {
			for _, name := range declared(declaration) {
				s.add(t, name, declaration, texts)
			}
			if f, ok := declaration.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Benchmark") {
				s.benchmarks[f.Name.Name] = f
			}
		}
	}
	return s
}

// add adds the identifiers and the claims of a declaration.
func (s *benchSource) add(t *testing.T, name string, declaration ast.Node, texts map[string]string) {
	t.Helper()
	ast.Inspect(declaration, func(node ast.Node) bool {
		switch x := node.(type) {
		case *ast.Ident:
			s.uses[name] = append(s.uses[name], x.Name)
		case *ast.CallExpr:
			f, ok := x.Fun.(*ast.SelectorExpr)
			if !ok || f.Sel.Name != "Claim" || len(x.Args) != 2 {
				break
			}
			c := claim{textOf(x.Args[0], texts), textOf(x.Args[1], texts)}
			if c.page == "" || c.text == "" {
				t.Errorf("%s: the arguments of samples.Claim are not constants", name)
				break
			}
			s.claims[name] = append(s.claims[name], c)
		}
		return true
	})
}

// claimsOf returns the claims of declarations and of all that they use.
func (s *benchSource) claimsOf(names []string) (all []claim) {
	seen := map[string]bool{}
	for len(names) > 0 {
		name := names[0]
		names = names[1:]
		if !seen[name] {
			seen[name] = true
			all = append(all, s.claims[name]...)
			names = append(names, s.uses[name]...)
		}
	}
	return all
}

// selected returns the benchmarks that a value of -bench selects, if they have sub-benchmarks for
// its other elements.
func (s *benchSource) selected(t *testing.T, pattern string) (names []string) {
	t.Helper()
	elements := strings.Split(pattern, "/")
	for name, f := range s.benchmarks {
		if regexp.MustCompile(elements[0]).MatchString(name) && s.hasRuns(f.Body, elements[1:]) {
			names = append(names, name)
		}
	}
	return names
}

// hasRuns reports whether a node has nested calls of Run with names that the elements may match. A
// name that is not a literal may be any that the package has.
func (s *benchSource) hasRuns(node ast.Node, elements []string) bool {
	if len(elements) == 0 {
		return true
	}
	found := false
	ast.Inspect(node, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok || found || len(call.Args) != 2 {
			return !found
		}
		if f, ok := call.Fun.(*ast.SelectorExpr); !ok || f.Sel.Name != "Run" {
			return true
		}
		names := s.names
		if text := textOf(call.Args[0], nil); text != "" {
			names = []string{text}
		}
		found = slices.ContainsFunc(names, regexp.MustCompile(elements[0]).MatchString) &&
			s.hasRuns(call.Args[1], elements[1:])
		return false
	})
	return found
}

// parseFiles parses the files of a directory.
func parseFiles(t *testing.T, dir, pattern string) (files []*ast.File) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// declared returns the names of a declaration at the top of a file.
func declared(declaration ast.Decl) (names []string) {
	switch d := declaration.(type) {
	case *ast.FuncDecl:
		return []string{d.Name.Name}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if values, ok := spec.(*ast.ValueSpec); ok {
				for _, name := range values.Names {
					names = append(names, name.Name)
				}
			}
		}
	}
	return names
}

// constants returns the texts that names are declared with.
func constants(files []*ast.File) map[string]string {
	texts := map[string]string{}
	for _, file := range files {
		ast.Inspect(file, func(node ast.Node) bool {
			if spec, ok := node.(*ast.ValueSpec); ok {
				for i, value := range spec.Values {
					if text := textOf(value, nil); text != "" {
						texts[spec.Names[i].Name] = text
					}
				}
			}
			return true
		})
	}
	return texts
}

// textOf returns the text of an expression of literals and constants, or "".
func textOf(expression ast.Expr, texts map[string]string) string {
	switch x := expression.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(x.Value) // a number is not a text
		return text
	case *ast.Ident:
		return texts[x.Name]
	case *ast.BinaryExpr:
		return textOf(x.X, texts) + textOf(x.Y, texts)
	}
	return ""
}

// literals returns the texts in a file that may be names.
func literals(file *ast.File) (all []string) {
	name := regexp.MustCompile(`^[\w.-]+$`)
	ast.Inspect(file, func(node ast.Node) bool {
		if x, ok := node.(*ast.BasicLit); ok && name.MatchString(textOf(x, nil)) {
			all = append(all, textOf(x, nil))
		}
		return true
	})
	return all
}

// Each shell block of docs/performance.md is the command of a benchmark.
func TestPerformancePageHasOnlyBenchmarks(t *testing.T) {
	block := regexp.MustCompile("(?s)```(\\w*)\n(.*?)```")
	blocks := block.FindAllStringSubmatch(read(t, "docs/performance.md"), -1)
	for _, b := range blocks {
		if b[1] != "sh" || strings.Count(b[2], "\n") != 1 || !strings.Contains(b[2], "go test -run '^$' -bench ") {
			t.Errorf("a block of docs/performance.md is not one benchmark command:\n%s", b[2])
		}
	}
	if len(blocks) == 0 {
		t.Error("docs/performance.md has no command")
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
