package main

import (
	"archive/zip"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"
)

// toyRelease DIR RELEASE... puts files below DIR and starts a module proxy, in
// GOPROXY, that serves the fake Kubernetes of internal/artifact/build at releases.
// A module that is to be missing is a file to be removed.
func toyRelease(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: toyrelease DIR RELEASE...")
	}
	dir := ts.MkAbs(args[0])
	for _, release := range args[1:] {
		writeRelease(ts, dir, release)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	ts.Defer(server.Close)
	ts.Setenv("GOPROXY", server.URL)
}

func writeRelease(ts *testscript.TestScript, dir, release string) {
	archive, err := txtar.ParseFile(filepath.Join(here, "../../internal/artifact/build/testdata/release.txtar"))
	ts.Check(err)
	modules := map[string]map[string]string{"example.com/third": {
		"go.mod": "module example.com/third\n", "third.go": "package third\n\nconst Name = \"third\"\n",
	}}
	for _, file := range archive.Files {
		parts := strings.SplitN(file.Name, "/", 3)
		path := parts[0] + "/" + parts[1]
		if modules[path] == nil {
			modules[path] = map[string]string{}
		}
		text := string(file.Data)
		if parts[2] == ".go-version" {
			goVersion, _, _ := strings.Cut(strings.TrimPrefix(runtime.Version(), "go"), " ")
			text = strings.ReplaceAll(text, "GO", goVersion)
		}
		modules[path][parts[2]] = text
	}
	for path, files := range modules {
		version := "v0" + strings.TrimPrefix(release, "v1")
		switch path {
		case "k8s.io/kubernetes":
			version = release
		case "example.com/third":
			version = "v1.1.0"
		}
		ts.Check(writeModule(filepath.Join(dir, path, "@v"), path, version, files))
	}
}

// writeModule writes one version of a module as a module proxy serves it.
func writeModule(dir, path, version string, files map[string]string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	write := func(ending, text string) error {
		return os.WriteFile(filepath.Join(dir, version+ending), []byte(text), 0o644)
	}
	if err := write(".info", fmt.Sprintf(`{"Version":%q,"Time":"2022-07-13T14:21:56Z"}`, version)); err != nil {
		return err
	}
	if err := write(".mod", files["go.mod"]); err != nil {
		return err
	}
	listed, err := os.ReadFile(filepath.Join(dir, "list"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "list"), append(listed, version+"\n"...), 0o644); err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(dir, version+".zip"))
	if err != nil {
		return err
	}
	defer out.Close()
	archive := zip.NewWriter(out)
	for name, text := range files {
		w, err := archive.Create(path + "@" + version + "/" + name)
		if err != nil {
			return err
		}
		if _, err := w.Write([]byte(text)); err != nil {
			return err
		}
	}
	return archive.Close()
}

// base FILE writes a docker archive with an empty image of this machine's architecture, as the base
// of a scheduler image.
func writeBase(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: base FILE")
	}
	config, err := empty.Image.ConfigFile()
	ts.Check(err)
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	base, err := mutate.ConfigFile(empty.Image, config)
	ts.Check(err)
	tag, err := name.NewTag("localhost/base:v1")
	ts.Check(err)
	ts.Check(tarball.WriteToFile(ts.MkAbs(args[0]), tag, base))
}
