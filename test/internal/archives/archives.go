// Package archives reads the archives of `pmk-sched sysdump` in tests.
package archives

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"iter"
	"maps"
	"os"
	"testing"
)

// Read returns the files of a compressed archive.
func Read(t testing.TB, file string) map[string]string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	uncompressed, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for in := tar.NewReader(uncompressed); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = string(content)
	}
}

// Names returns the names of the files.
func Names(files map[string]string) iter.Seq[string] { return maps.Keys(files) }
