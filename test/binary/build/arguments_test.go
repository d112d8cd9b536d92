//go:build linux

package build

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// kube-scheduler would read the arguments of the bundled plugin as those that the package
// registers.
func TestBundledPluginWhoseArgumentsAnotherPackageRegistersIsRefused(t *testing.T) {
	dir := t.TempDir()
	module, err := filepath.Abs("testdata/samekind")
	if err != nil {
		t.Fatal(err)
	}
	pmkSched(t, dir, "build", "--branch", "v1.24.3", "--with", module, "--with", "builtin:coscheduling", "--binary",
		"refused").Fails(t, 2,
		"plugin Coscheduling: package example.com/samekind registers the kind CoschedulingArgs",
		"register a bundled plugin by another name")
	if _, err := os.Stat(filepath.Join(dir, "refused")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the scheduler was written: %v", err)
	}
}
