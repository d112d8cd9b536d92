// Package golden compares results of tests with files of the repository. Tests of a package that
// uses it have the flag -update, which writes the files instead.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// Updates reports whether the flag -update is set, for files that tests write themselves.
func Updates() bool { return *update }

// Equal fails the test if a result is not the content of the file, whose path is relative to the
// package's directory. With -update it writes the result to the file.
func Equal[Text ~string | ~[]byte](t testing.TB, file string, got Text) {
	t.Helper()
	if *update {
		write(t, file, []byte(got))
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (-update writes it)", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs, -update writes it (-want +got):\n%s", file, diff)
	}
}

func write(t testing.TB, file string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, content, 0o644); err != nil {
		t.Fatal(err)
	}
}
