package pmksched

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// testFunction is a test, benchmark or fuzz target of a package of this module.
type testFunction struct {
	pkg, name string
	build     constraint.Expr // nil without a build constraint
}

// selectedBy reports whether a go test command compiles and runs the function.
func (f testFunction) selectedBy(c goTest) bool {
	satisfied := func(tag string) bool {
		return tag == "linux" || tag == "unix" || tag == "amd64" || tag == c.tag
	}
	if !c.covers(f.pkg) || f.build != nil && !f.build.Eval(satisfied) {
		return false
	}
	if strings.HasPrefix(f.name, "Benchmark") {
		return c.bench != nil && c.bench.MatchString(f.name)
	}
	return c.run == nil || c.run.MatchString(f.name)
}

// goTest is one `go test` command of a part.
type goTest struct {
	line       string
	tag        string
	run, bench *regexp.Regexp // nil: every test, no benchmark
	packages   []string
}

func (c goTest) covers(pkg string) bool {
	return slices.ContainsFunc(c.packages, func(pattern string) bool { return inPattern(pattern, pkg) })
}

// inPattern reports whether a package pattern, such as ./test/lab/..., contains a package.
func inPattern(pattern, pkg string) bool {
	dir, below := strings.CutSuffix(pattern, "/...")
	dir = path.Clean("." + strings.TrimPrefix(strings.TrimPrefix(dir, modulePath), "."))
	return pkg == dir || below && strings.HasPrefix(pkg, dir+"/")
}

// readTestFunctions returns the tests, benchmarks and fuzz targets of this module.
func readTestFunctions(t *testing.T) []testFunction {
	t.Helper()
	name := regexp.MustCompile(`^(Test|Benchmark|Fuzz)([^a-z]|$)`)
	var found []testFunction
	err := filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if base := entry.Name(); base == "testdata" || file != "." && strings.HasPrefix(base, ".") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(file, "_test.go") {
			return nil
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, source, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		build, err := buildConstraint(source)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for _, declaration := range parsed.Decls {
			f, ok := declaration.(*ast.FuncDecl)
			if ok && f.Recv == nil && name.MatchString(f.Name.Name) && f.Name.Name != "TestMain" {
				found = append(found, testFunction{pkg: filepath.ToSlash(filepath.Dir(file)), name: f.Name.Name, build: build})
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// buildConstraint returns the constraint of a file's //go:build line, or nil.
func buildConstraint(source []byte) (constraint.Expr, error) {
	for line := range bytes.Lines(source) {
		text := strings.TrimSpace(string(line))
		if constraint.IsGoBuild(text) {
			return constraint.Parse(text)
		}
		if strings.HasPrefix(text, "package ") {
			return nil, nil
		}
	}
	return nil, nil
}

// readTargets returns the `go test` commands of the parts, as make expands them.
func readTargets(t *testing.T) []goTest {
	t.Helper()
	var commands []goTest
	for _, p := range readParts(t) {
		cmd := exec.Command("make", append([]string{"-n", "--no-print-directory"}, p.args...)...)
		cmd.Env = append(os.Environ(), "MAKEFLAGS=") // without the flags of the make that runs this test
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("make -n %s: %v", p.args, err)
		}
		for line := range strings.Lines(string(out)) {
			if _, args, ok := strings.Cut(strings.TrimSpace(line), "go test "); ok {
				commands = append(commands, parseGoTest(t, args))
			}
		}
	}
	return commands
}

func parseGoTest(t *testing.T, args string) goTest {
	t.Helper()
	c := goTest{line: args}
	words := strings.Fields(args)
	for i, word := range words {
		switch {
		case word == "-tags":
			c.tag = words[i+1]
		case word == "-run":
			c.run = regexp.MustCompile(strings.Trim(words[i+1], "'"))
		case word == "-bench":
			c.bench = regexp.MustCompile(strings.Trim(words[i+1], "'"))
		case strings.HasPrefix(word, "./") || strings.HasPrefix(word, modulePath):
			c.packages = append(c.packages, word)
		}
	}
	if len(c.packages) == 0 {
		t.Errorf("a part names no package: go test %s", args)
	}
	return c
}

func TestMakeTargetsAndTestsMatch(t *testing.T) {
	functions, commands, fuzzed := readTestFunctions(t), readTargets(t), readFuzzTargets(t)

	t.Run("every package that a part names has something to run", func(t *testing.T) {
		for _, c := range commands {
			for _, pattern := range c.packages {
				selects := slices.ContainsFunc(functions, func(f testFunction) bool {
					return inPattern(pattern, f.pkg) && f.selectedBy(c)
				})
				// The packages of UNIT, which are import paths, include some without tests.
				if !selects && !strings.HasPrefix(pattern, modulePath) {
					t.Errorf("a part selects no test of %s: go test %s", pattern, c.line[:min(len(c.line), 150)])
				}
			}
		}
	})
	t.Run("every test is run by a part of make test-all", func(t *testing.T) {
		for _, f := range functions {
			selected := slices.ContainsFunc(commands, f.selectedBy)
			if strings.HasPrefix(f.name, "Fuzz") {
				selected = selected && fuzzed[f.pkg+" "+f.name]
			}
			if !selected {
				t.Errorf("no part runs %s of %s", f.name, f.pkg)
			}
		}
	})
}

// readFuzzTargets returns the packages and names of the fuzz targets that `make fuzz` runs.
func readFuzzTargets(t *testing.T) map[string]bool {
	t.Helper()
	out, err := exec.Command("hack/fuzz.sh", "list").Output()
	if err != nil {
		t.Fatalf("hack/fuzz.sh list: %v", err)
	}
	found := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		found[strings.TrimSpace(line)] = true
	}
	return found
}
