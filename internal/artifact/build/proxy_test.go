package build

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
	"golang.org/x/mod/zip"

	"github.com/pmk-sched/pmk-sched/versions"
)

// proxy is a module proxy with made-up modules.
type proxy struct {
	url string

	mu sync.Mutex
	// files by request path; status by request path wins over them.
	files  map[string][]byte
	status map[string]int
	asked  []string
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	p := &proxy{files: map[string][]byte{}, status: map[string]int{}}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	p.url = server.URL
	archive := readArchive(t, "modules.txtar")
	modules := map[module.Version]map[string]string{}
	for _, file := range archive.Files {
		path, rest, _ := strings.Cut(file.Name, "@")
		version, name, _ := strings.Cut(rest, "/")
		m := module.Version{Path: path, Version: version}
		if modules[m] == nil {
			modules[m] = map[string]string{}
		}
		modules[m][name] = string(file.Data)
	}
	for m, files := range modules {
		p.add(t, m.Path, m.Version, files)
	}
	return p
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, r.URL.Path)
	if status := p.status[r.URL.Path]; status != 0 {
		http.Error(w, http.StatusText(status), status)
		return
	}
	data, found := p.files[r.URL.Path]
	if !found {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(data)
}

// fail makes the proxy answer requests for one file of a module with a status.
func (p *proxy) fail(path, version, kind string, status int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status[fmt.Sprintf("/%s/@v/%s.%s", path, version, kind)] = status
}

// add serves a module made of files.
func (p *proxy) add(t *testing.T, path, version string, files map[string]string) {
	t.Helper()
	var sources []zip.File
	for name, data := range files {
		sources = append(sources, memoryFile{name, data})
	}
	var archive bytes.Buffer
	if err := zip.Create(&archive, module.Version{Path: path, Version: version}, sources); err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	base := "/" + path + "/@v/"
	p.files[base+version+".info"] = fmt.Appendf(nil, `{"Version":%q,"Time":"2022-07-13T14:21:56Z"}`, version)
	p.files[base+version+".mod"] = []byte(files["go.mod"])
	p.files[base+version+".zip"] = archive.Bytes()
	p.files[base+"list"] = append(p.files[base+"list"], version+"\n"...)
}

// release serves the fake Kubernetes at a release. The files in change, named with their module's
// path, replace its files.
func (p *proxy) release(t *testing.T, release string, change map[string]string) {
	t.Helper()
	staging := "v0" + strings.TrimPrefix(release, semver.Major(release))
	for path, files := range releaseFiles(t, change) {
		version := staging
		if path == kubernetes {
			version = release
		}
		p.add(t, path, version, files)
	}
}

// releaseFiles returns the files of the fake Kubernetes by module and name.
func releaseFiles(t *testing.T, change map[string]string) map[string]map[string]string {
	t.Helper()
	modules := map[string]map[string]string{}
	put := func(name, data string) {
		parts := strings.SplitN(name, "/", 3)
		path := parts[0] + "/" + parts[1]
		if modules[path] == nil {
			modules[path] = map[string]string{}
		}
		modules[path][parts[2]] = data
	}
	for _, file := range readArchive(t, "release.txtar").Files {
		data := string(file.Data)
		if strings.HasSuffix(file.Name, "/.go-version") {
			data = strings.ReplaceAll(data, "GO", localGo())
		}
		put(file.Name, data)
	}
	for name, data := range change {
		put(name, data)
	}
	return modules
}

func readArchive(t *testing.T, name string) *txtar.Archive {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return archive
}

// localGo is the version of Go that runs the tests.
func localGo() string {
	version, _, _ := strings.Cut(strings.TrimPrefix(runtime.Version(), "go"), " ")
	return version
}

// memoryFile is a file of a module's zip.
type memoryFile struct{ name, data string }

func (f memoryFile) Path() string                { return f.name }
func (f memoryFile) Lstat() (os.FileInfo, error) { return memoryInfo{f}, nil }
func (f memoryFile) Open() (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(f.data)), nil
}

type memoryInfo struct{ memoryFile }

func (i memoryInfo) Name() string       { return filepath.Base(i.name) }
func (i memoryInfo) Size() int64        { return int64(len(i.data)) }
func (i memoryInfo) Mode() os.FileMode  { return 0o644 }
func (i memoryInfo) IsDir() bool        { return false }
func (i memoryInfo) ModTime() time.Time { return time.Time{} }
func (i memoryInfo) Sys() any           { return nil }

// environment returns the environment of a user whose modules come from p. The build cache is
// shared by all tests, everything else is fresh.
func (p *proxy) environment(t *testing.T) []string {
	t.Helper()
	home := t.TempDir()
	// Without this, go leaves a process behind that still writes there.
	write(t, filepath.Join(home, ".config", "go", "telemetry", "mode"), "off 2024-01-01\n")
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home,
		"GOPROXY=" + p.url, "GOSUMDB=off", "GOFLAGS=-modcacherw",
		"GOMODCACHE=" + filepath.Join(home, "mod"), "GOCACHE=" + buildCache(t),
	}
}

// buildCache is Go's own build cache, so that the standard library is compiled once.
func buildCache(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("GOCACHE"); dir != "" && dir != "off" {
		return dir
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "go-build")
}

func mustRelease(t *testing.T, name string) versions.Release {
	t.Helper()
	release, err := versions.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return release
}
