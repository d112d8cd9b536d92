//go:build linux

package lab

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNamesOfLabsInTwoDirectoriesDiffer(t *testing.T) {
	a, b := "/a/labs/demo", "/b/labs/demo"
	if linkName(a) == linkName(b) || groupName(a) == groupName(b) {
		t.Error("two labs share a name")
	}
	long := "/a/" + strings.Repeat("x", maxName)
	if n := len(linkName(long)); n > 15 {
		t.Errorf("link name of %d characters", n)
	}
}

func TestNamesDoNotDependOnSpellingOfDirectory(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "labs", "demo")
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.Symlink("labs", filepath.Join(parent, "linked"))); err != nil {
		t.Fatal(err)
	}
	t.Chdir(parent)
	for _, stateDir := range []string{"labs", "./labs/", "linked", filepath.Join(parent, "linked")} {
		l, err := Get(stateDir, "demo")
		if err != nil {
			t.Fatal(err)
		}
		if linkName(l.dir) != linkName(dir) || groupName(l.dir) != groupName(dir) || !filepath.IsAbs(l.dir) {
			t.Errorf("with %s: %s, %s", stateDir, l.dir, groupName(l.dir))
		}
	}
}
