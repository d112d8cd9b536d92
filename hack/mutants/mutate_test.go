package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const source = `package a

import "time"

const wait = 5 * time.Second

func f(all []int, log logger) (int, error) {
	if len(all) == 0 {
		log.Info("empty")
		return 0, errEmpty
	}
	for _, n := range all[1:] {
		if n >= 3 && more() {
			continue
		}
		touch(n)
	}
	it.done = true
	return max(all[0], 2) + len("a"+"b"), nil
}
`

func TestMutantsOfAFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := mutantsOf(&pkg{ImportPath: modulePath + "a", Dir: dir, GoFiles: []string{"a.go"}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range all {
		got = append(got, m.key())
		if text := string(m.source()); text == source || len(text) != len(source)+len(m.with)-(m.end-m.begin) {
			t.Errorf("%s:\n%s", m.key(), text)
		}
	}
	slices.Sort(got)
	want := []string{
		"a/a.go: if len(all) «==→!=» 0 {",
		"a/a.go: if len(all) == «0→1» {",
		"a/a.go: if «len(all) == 0→false && (len(all) == 0)» {",
		"a/a.go: if «len(all) == 0→true || len(all) == 0» {",
		"a/a.go: for _, n := range all[«1→2»:] {",
		"a/a.go: if n «>=→>» 3 && more() {",
		"a/a.go: if n >= 3 «&&→||» more() {",
		"a/a.go: if n >= «3→4» && more() {",
		"a/a.go: if «n >= 3 && more()→false && (n >= 3 && more())» {",
		"a/a.go: if «n >= 3 && more()→true || n >= 3 && more()» {",
		"a/a.go: «continue→break»",
		"a/a.go: «touch(n)→»",
		"a/a.go: «it.done = true→»",
		"a/a.go: it.done = «true→false»",
		"a/a.go: return max(all[«0→1»], 2) + len(\"a\"+\"b\"), nil",
		"a/a.go: return max(all[0], 2) «+→-» len(\"a\"+\"b\"), nil",
		"a/a.go: return «max→min»(all[0], 2) + len(\"a\"+\"b\"), nil",
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEveryEquivalentMutantHasAReason(t *testing.T) {
	if _, err := readEquivalent(); err != nil {
		t.Error(err)
	}
}
