package build

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/sumdb/note"
)

// sums starts a checksum database of the modules of p, and returns GOSUMDB for it. Each answer is
// about a tree that has grown by more than a tile, as in the real database.
func (p *proxy) sums(t *testing.T) (gosumdb string, stop func()) {
	t.Helper()
	signer, verifier, err := note.GenerateKey(nil, "sum.example.com")
	if err != nil {
		t.Fatal(err)
	}
	database, others := sumdb.NewTestServer(signer, p.gosum), 0
	handler := sumdb.NewServer(database)
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		for range 300 {
			if others++; !strings.HasPrefix(r.URL.Path, "/lookup/") {
				break
			}
			m := module.Version{Path: "example.com/other", Version: fmt.Sprintf("v1.0.%d", others)}
			if _, err := database.Lookup(r.Context(), m); err != nil {
				t.Error(err)
			}
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return verifier + " " + server.URL, server.Close
}

// gosum returns the lines of a module for go.sum.
func (p *proxy) gosum(path, version string) ([]byte, error) {
	if path == "example.com/other" {
		return fmt.Appendf(nil, "%s %s h1:\n", path, version), nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	base := fmt.Sprintf("/%s/@v/%s", path, version)
	archive, err := os.CreateTemp("", "module-*.zip")
	if err != nil {
		return nil, err
	}
	defer os.Remove(archive.Name())
	if _, err := archive.Write(p.files[base+".zip"]); err != nil {
		return nil, err
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	sum, err := dirhash.HashZip(archive.Name(), dirhash.Hash1)
	if err != nil {
		return nil, err
	}
	modSum, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(p.files[base+".mod"])), nil
	})
	return fmt.Appendf(nil, "%s %s %s\n%s %s/go.mod %s\n", path, version, sum, path, version, modSum), err
}

// stage returns the options of a build whose modules are collected for a bundle.
func (p *proxy) stage(t *testing.T, gosumdb string) Options {
	t.Helper()
	o := p.options(t)
	o.Env = append(o.Env, "GOSUMDB="+gosumdb)
	staged, err := Stage(t.Context(), o.Environment, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	o.Environment = staged
	return o
}

// unpackModules copies the modules of a bundle to a new cache directory, as an archive has them.
func unpackModules(t *testing.T, from string) (to string) {
	t.Helper()
	to = t.TempDir()
	root := filepath.Join(from, filepath.FromSlash(ModuleDownloads))
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(path, ".ziphash") || strings.HasSuffix(path, ".lock") {
			return err
		}
		data, err := os.ReadFile(path)
		relative, _ := filepath.Rel(from, path)
		write(t, filepath.Join(to, relative), string(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}

func TestModulesOfABundleAreVerifiedWithoutANetwork(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	p.release(t, testRelease, nil)
	gosumdb, stop := p.sums(t)
	o := p.stage(t, gosumdb)
	first := mustRun(t, o)
	// Nothing that one build has read of the tree is of use for another order of questions.
	tiles := filepath.Join(o.CacheDir, filepath.FromSlash(ModuleDownloads), "sumdb", "sum.example.com", "tile")
	if err := os.RemoveAll(tiles); err != nil {
		t.Fatal(err)
	}
	if err := CompleteSums(t.Context(), o.Environment); err != nil {
		t.Fatal(err)
	}
	stop()

	o.CacheDir = unpackModules(t, o.CacheDir)
	o.Env = append(p.environment(t), "GOPROXY=off", "GOSUMDB="+gosumdb)
	second := mustRun(t, o)

	if second.Cached || first.Binaries[0].SHA256 != second.Binaries[0].SHA256 {
		t.Errorf("without a network: got %+v, want the bytes of %+v", second.Binaries, first.Binaries)
	}
	mustBeEmpty(t, newCache(o.CacheDir).temporary())
}

func TestChangedModuleOfABundleIsRefused(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	p.release(t, testRelease, nil)
	gosumdb, stop := p.sums(t)
	o := p.stage(t, gosumdb)
	if err := FetchModules(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if err := CompleteSums(t.Context(), o.Environment); err != nil {
		t.Fatal(err)
	}
	stop()
	o.CacheDir = unpackModules(t, o.CacheDir)
	p.release(t, testRelease, map[string]string{"k8s.io/component-base/evil.go": "package evil\n"})
	name := "/k8s.io/component-base/@v/v0.24.3.zip"
	write(t, filepath.Join(o.CacheDir, filepath.FromSlash(ModuleDownloads+name)), string(p.files[name]))
	o.Env = append(p.environment(t), "GOPROXY=off", "GOSUMDB="+gosumdb)

	failed := mustFail(t, o)

	if !strings.Contains(failed.Error(), "checksum mismatch") && !strings.Contains(failed.Output, "checksum mismatch") {
		t.Errorf("got %v, want a checksum mismatch", failed)
	}
}

func TestGoOfABundleComesBeforeTheOneOnPath(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := newCache(dir)
	for _, version := range []string{"1.9.9", "1.26.8", "1.26.10"} {
		write(t, filepath.Join(GoPath(dir, version), "bin", "go"), "")
	}
	write(t, filepath.Join(GoPath(dir, "1.27.0"), "README"), "")
	got, err := c.goProgram([]string{"PATH=" + os.Getenv("PATH")})
	if want := filepath.Join(GoPath(dir, "1.26.10"), "bin", "go"); err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	for file, want := range map[string]string{
		"golang.org/toolchain/@v/v0.0.1-go1.26.8." + Host().OS + "-" + Host().Arch + ".zip":  "1.26.8",
		"golang.org/toolchain/@v/v0.0.1-go1.26.8." + Host().OS + "-" + Host().Arch + ".info": "",
		"golang.org/toolchain/@v/v0.0.1-go1.26.8.plan9-arm.zip":                              "",
		"golang.org/toolchain/@v/v0.0.1-go../../x." + Host().OS + "-" + Host().Arch + ".zip": "",
		"example.com/toolchain/@v/v0.0.1-go1.26.8.linux-amd64.zip":                           "",
	} {
		if _, version, isGo := GoArchive(file); isGo != (want != "") || isGo && version != want {
			t.Errorf("GoArchive(%q): got %q, %v, want %q", file, version, isGo, want)
		}
	}
}
