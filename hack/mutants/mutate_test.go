package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const source = `package a

const limit = 5 * 3

func f(all []int, log logger) int {
	if len(all) == 0 {
		log.Info("empty")
		return 0
	}
	for _, n := range all[1:] {
		if n >= 3 && more() {
			continue
		}
		touch(n)
	}
	it.done = true
	return max(all[0], 2) + len("a"+"b")
}

func g(at *float64) bool { return *at*2 > 1 }

type logger interface{ Info(string) }

var it struct{ done bool }

func more() bool { return it.done }
func touch(int)  {}
`

// read returns a package of one file.
func read(t *testing.T, text string) *pkg {
	t.Helper()
	p := &pkg{ImportPath: modulePath + "a", Dir: t.TempDir(), GoFiles: []string{"a.go"}}
	if err := os.WriteFile(filepath.Join(p.Dir, "a.go"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.findMutants(nil); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestMutantsOfAFile(t *testing.T) {
	var got []string
	for _, m := range read(t, source).mutants {
		got = append(got, m.key())
	}
	want := []string{
		"a/a.go f: if len(all) «==→!=» 0 {",
		"a/a.go f: if len(all) == «0→1» {",
		"a/a.go f: if «len(all) == 0→false» {",
		"a/a.go f: if «len(all) == 0→true» {",
		"a/a.go f: for _, n := range all[«1→2»:] {",
		"a/a.go f: if n «>=→>» 3 && more() {",
		"a/a.go f: if n >= 3 «&&→||» more() {",
		"a/a.go f: if n >= «3→4» && more() {",
		"a/a.go f: if «n >= 3 && more()→false» {",
		"a/a.go f: if «n >= 3 && more()→true» {",
		"a/a.go f: «continue→break»",
		"a/a.go f: «touch(n)→»",
		"a/a.go f: «it.done = true→»",
		"a/a.go f: it.done = «true→false»",
		"a/a.go f: return max(all[«0→1»], 2) + len(\"a\"+\"b\")",
		"a/a.go f: return max(all[0], 2) «+→-» len(\"a\"+\"b\")",
		"a/a.go f: return «max→min»(all[0], 2) + len(\"a\"+\"b\")",
		"a/a.go g: func g(at *float64) bool { return *at«*→/»2 > 1 }",
		"a/a.go g: func g(at *float64) bool { return *at*2 «>→>=» 1 }",
		"a/a.go g: func g(at *float64) bool { return *at*2 > «1→2» }",
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestEachMutantIsSwitchedOn runs a package with all its mutants in it, once for each of them.
func TestEachMutantIsSwitchedOn(t *testing.T) {
	p := read(t, "package main\n\nfunc main() { print(calc(3)) }\n\n"+
		"func calc(n int) int {\n\tif n > 2 && n < 9 {\n\t\treturn n*2 + 1\n\t}\n\treturn n\n}\n")
	dir, replace := t.TempDir(), map[string]string{}
	if err := p.write(dir, replace); err != nil {
		t.Fatal(err)
	}
	written := filepath.Join(dir, "a")
	if err := os.WriteFile(filepath.Join(written, "go.mod"), []byte("module a\n\ngo 1.24\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", "program", ".")
	build.Dir = written
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	run := func(id string) string {
		cmd := exec.Command(filepath.Join(written, "program"))
		cmd.Env = append(os.Environ(), "MUTANT="+id)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", id, err, out)
		}
		return string(out)
	}
	if got := run(""); got != "7" {
		t.Errorf("without a mutant: %s, want 7", got)
	}
	want := map[string]string{
		"if «n > 2 && n < 9→false» {": "3", "if «n > 2 && n < 9→true» {": "7", "if n «>→>=» 2 && n < 9 {": "7",
		"if n > «2→3» && n < 9 {": "3", "if n > 2 «&&→||» n < 9 {": "7", "if n > 2 && n «<→<=» 9 {": "7",
		"if n > 2 && n < «9→10» {": "7", "return n*2 «+→-» 1": "5", "return n*2 + «1→2»": "8",
		"return n«*→/»2 + 1": "2", "func main() { «print(calc(3))→» }": "",
	}
	for _, m := range p.mutants {
		_, line, _ := strings.Cut(m.key(), ": ")
		if got := run(m.id()); got != want[line] {
			t.Errorf("%s: %s, want %s", line, got, want[line])
		}
		delete(want, line)
	}
	if len(want) > 0 {
		t.Errorf("no mutants %v", want)
	}
}

func TestEveryEquivalentMutantHasAReason(t *testing.T) {
	if _, err := readEquivalent(); err != nil {
		t.Error(err)
	}
}
