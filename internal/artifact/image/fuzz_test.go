package image

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// FuzzArchive searches image archives that crash the reader, or make it write outside of the
// directory that it is given.
func FuzzArchive(f *testing.F) {
	img, err := random.Image(64, 2)
	if err != nil {
		f.Fatal(err)
	}
	tag, err := name.NewTag("localhost/a:1")
	if err != nil {
		f.Fatal(err)
	}
	var archive bytes.Buffer
	if err := tarball.Write(tag, img, &archive); err != nil {
		f.Fatal(err)
	}
	f.Add(archive.Bytes(), "/bin/a")
	f.Add(archive.Bytes()[:1024], "")
	f.Add([]byte{}, "../../a")
	f.Fuzz(func(t *testing.T, text []byte, file string) {
		dir := t.TempDir()
		extractInto(t, dir, Source{Archive: writeText(t, filepath.Join(dir, "in", "a.tar"), string(text))}, file)
	})
}

// FuzzLayout searches index files of OCI layouts that crash the reader, or make it write outside of
// the directory that it is given.
func FuzzLayout(f *testing.F) {
	img, err := random.Image(64, 1)
	if err != nil {
		f.Fatal(err)
	}
	whole := f.TempDir()
	if _, err := layout.Write(whole, mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: img})); err != nil {
		f.Fatal(err)
	}
	index, err := os.ReadFile(filepath.Join(whole, "index.json"))
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{string(index), `{}`, `{"manifests":[{"digest":"sha256:../../x"}]}`,
		`{"schemaVersion":2,"manifests":[null]}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		in := filepath.Join(dir, "in")
		if err := os.CopyFS(in, os.DirFS(whole)); err != nil {
			t.Fatal(err)
		}
		writeText(t, filepath.Join(in, "index.json"), string(text))
		extractInto(t, dir, Source{Layout: in}, "/bin/a")
	})
}

// extractInto extracts a file to the directory "out" and fails the test if anything else changed in
// dir.
func extractInto(t *testing.T, dir string, src Source, file string) {
	t.Helper()
	out := filepath.Join(dir, "out")
	if err := os.Mkdir(out, 0o700); err != nil {
		t.Fatal(err)
	}
	// The file may not exist; an error is as good as a file.
	_ = ExtractFile(t.Context(), src, file, "linux/amd64", filepath.Join(out, "program"))
	_, _ = ExtractProgram(t.Context(), src, []string{file}, "linux/amd64", filepath.Join(out, "program"))
	for _, entry := range names(t, dir) {
		if entry != "in" && entry != "out" {
			t.Fatalf("%s was written", entry)
		}
	}
	for _, entry := range names(t, out) {
		if entry != "program" {
			t.Fatalf("%s was left", entry)
		}
	}
}
