package bundle

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
)

// goZip returns the name and the content of the module of a version of Go.
func goZip(t *testing.T, version string) (name, content string) {
	t.Helper()
	module := "v0.0.1-go" + version + "." + build.Host().OS + "-" + build.Host().Arch
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, file := range []string{"VERSION", "bin/go", "pkg/tool/linux/compile", "src/cmd/_go.mod", "src/bin/notes"} {
		f, err := w.Create("golang.org/toolchain@" + module + "/" + file)
		if err == nil {
			_, err = f.Write([]byte(file + " of " + version))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return downloads + "/golang.org/toolchain/@v/" + module + ".zip", b.String()
}

// A machine without Go builds with the newest one of a bundle. The Go that is there stays.
func TestNewestGoOfABundleIsUnpacked(t *testing.T) {
	files := map[string]string{}
	versions := []string{"1.25.8", "1.25.9", "1.26.0", "1.26.10", "1.26.2", "1.9.7"} // in the order of their names
	for _, version := range versions {
		name, content := goZip(t, version)
		files[name] = content
	}
	dir, file := t.TempDir(), bundleOf(t, "b.tar", "", files)
	if err := unpack(t, file, dir); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"go1.26.10/bin/go!": "bin/go of 1.26.10",
		"go1.26.10/pkg/tool/linux/compile!": "pkg/tool/linux/compile of 1.26.10", "go1.26.10/VERSION": "VERSION of 1.26.10",
		"go1.26.10/src/bin/notes": "src/bin/notes of 1.26.10", "go1.26.10/src/cmd/_go.mod": "src/cmd/_go.mod of 1.26.10",
		"go1.26.10/src/cmd/go.mod": "src/cmd/_go.mod of 1.26.10"}
	unpacked := filepath.Dir(build.GoPath(dir, "1.26.10"))
	if diff := cmp.Diff(want, tree(t, unpacked)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	version := filepath.Join(unpacked, "go1.26.10/VERSION")
	if err := os.Chmod(version, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(version, []byte("the one before"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unpack(t, file, dir); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(version); err != nil || string(got) != "the one before" {
		t.Errorf("the Go that was there is replaced: %q, %v", got, err)
	}
	a, err := open(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(versions, a.Go); diff != "" {
		t.Errorf("versions in the manifest (-want +got):\n%s", diff)
	}
	if err := a.close(); err != nil {
		t.Error(err)
	}
}
