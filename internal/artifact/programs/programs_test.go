//go:build linux

package programs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/programs"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/test/published"
	"github.com/pmk-sched/pmk-sched/versions"
)

const release, etcd = "v1.24.3", "v3.5.3"

// all are programs of each kind: from an image, from the download site, of another module.
var all = []string{"kube-apiserver", "kube-scheduler", "kubelet", "kubeadm", "kubectl", "etcd", "go-runner"}

// prints is the output of each program for its version.
func prints(version, etcd string) map[string]string {
	return map[string]string{
		"kube-apiserver": "Kubernetes " + version, "kube-scheduler": "Kubernetes " + version, "kubelet": "Kubernetes " + version,
		"kubeadm": version, "kubectl": `{"clientVersion": {"gitVersion": "` + version + `"}}`,
		"etcd": "etcd Version: " + strings.TrimPrefix(etcd, "v"), "go-runner": "",
	}
}

// scripts writes programs that print a version.
func scripts(t *testing.T, outputs map[string]string) published.Programs {
	t.Helper()
	dir, paths := t.TempDir(), published.Programs{}
	for name, output := range outputs {
		paths[name] = filepath.Join(dir, name)
		// The padding makes the program larger than a buffer.
		script := fmt.Sprintf("#!/bin/sh\necho '%s'\nexit\n%s\n", output, strings.Repeat("# "+name+"\n", 4_000))
		if err := os.WriteFile(paths[name], []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return paths
}

func request(t *testing.T, names ...string) programs.Request {
	t.Helper()
	parsed, err := versions.Parse(release)
	if err != nil {
		t.Fatal(err)
	}
	return programs.Request{Release: parsed, Names: names, EtcdVersion: etcd}
}

type finder struct {
	*programs.Finder
	notes []string
}

// newFinder returns a finder with an empty cache, and without a go command.
func newFinder(t *testing.T, from string, site *published.Site) *finder {
	t.Helper()
	f := &finder{Finder: &programs.Finder{Environment: build.Environment{CacheDir: t.TempDir()}, From: from}}
	f.Note = func(text string) { f.notes = append(f.notes, text) }
	if site != nil {
		f.Registry, f.Downloads = site.Registry, site.Downloads
	}
	return f
}

func TestPublishedProgramsAreDownloadedOnce(t *testing.T) {
	want := scripts(t, prints(release, etcd))
	site := published.Start(t, release, etcd, want)
	f := newFinder(t, programs.Auto, site)
	found, err := f.Find(t.Context(), request(t, all...))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		p := found[name]
		got, err := os.ReadFile(p.Path)
		wanted, err2 := os.ReadFile(want[name])
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, wanted) {
			t.Errorf("%s: not the published program", name)
		}
		if info, err := os.Stat(p.Path); err != nil || info.Mode()&0o111 == 0 {
			t.Errorf("%s: not executable: %v, %v", name, info, err)
		}
		if origin := site.Registry + "/kube-apiserver:v1.24.3@sha256:"; name == "kube-apiserver" &&
			!strings.HasPrefix(p.Origin, origin) {
			t.Errorf("origin %s, want %s…", p.Origin, origin)
		}
		if !slices.Contains(f.notes, p.String()) {
			t.Errorf("%s is not reported: %q", p, f.notes)
		}
	}
	if got, want := found["etcd"].Version, etcd; got != want {
		t.Errorf("etcd %s, want %s", got, want)
	}
	requests := site.Requests()
	f.notes = nil
	again, err := f.Find(t.Context(), request(t, all...))
	if err != nil || site.Requests() != requests || len(f.notes) > 0 {
		t.Errorf("second time: error %v, %d more requests, notes %q", err, site.Requests()-requests, f.notes)
	}
	if diff := cmp.Diff(found, again); diff != "" {
		t.Errorf("second time (-first +second)\n%s", diff)
	}
	anyEtcd := request(t, "etcd")
	anyEtcd.EtcdVersion = ""
	again, err = f.Find(t.Context(), anyEtcd)
	if err != nil || again["etcd"] != found["etcd"] || site.Requests() != requests {
		t.Errorf("etcd of any version: got %+v, error %v, %d more requests", again, err, site.Requests()-requests)
	}
}

func TestChangedProgramsOfTheCacheAreDownloadedAgain(t *testing.T) {
	site := published.Start(t, release, etcd, scripts(t, prints(release, etcd)))
	f := newFinder(t, programs.Auto, site)
	first, err := f.Find(t.Context(), request(t, "kubelet", "kubectl"))
	if err != nil {
		t.Fatal(err)
	}
	replace := func(file, old, text string) {
		content, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(file, bytes.Replace(content, []byte(old), []byte(text), 1), 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	replace(first["kubelet"].Path, "exit", "true")
	replace(filepath.Join(filepath.Dir(first["kubectl"].Path), "program.json"), `"kubectl"`, `"kubeadm"`)
	f.notes = nil
	again, err := f.Find(t.Context(), request(t, "kubelet", "kubectl"))
	if err != nil || len(f.notes) != 2 {
		t.Errorf("error %v, notes %q", err, f.notes)
	}
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("(-first +second)\n%s", diff)
	}
	if content, err := os.ReadFile(again["kubelet"].Path); err != nil || !bytes.Contains(content, []byte("exit")) {
		t.Errorf("the changed kubelet is still there (%v)", err)
	}
}

func TestChangedPublishedProgramsAreRefused(t *testing.T) {
	kubelet, checksum := "/release/v1.24.3/bin/linux/"+build.Host().Arch+"/kubelet", "/kubelet.sha256"
	for _, c := range []struct {
		name, program string
		change        func(path string, body []byte) []byte
		says          string
	}{
		{"a download with other content", "kubelet", at(kubelet, func(body []byte) []byte {
			return bytes.Replace(body, []byte("echo"), []byte("exec"), 1)
		}), "expected sha256 "},
		{"a download that is cut off", "kubelet", at(kubelet, func(body []byte) []byte {
			if len(body) > 64 { // not the checksum
				return body[:len(body)/2]
			}
			return body
		}),
			"unexpected EOF"},
		{"another checksum", "kubelet", at(checksum, func(body []byte) []byte {
			return bytes.ReplaceAll(body, body[:1], []byte("x"))
		}), "it is not a sha256 digest"},
		{"a web page in place of a checksum", "kubelet", at(checksum, func(body []byte) []byte {
			return []byte("<html>" + string(body[6:]))
		}), "it is not a sha256 digest"},
		{"a layer with other content", "kube-apiserver", at("/blobs/", func(body []byte) []byte {
			if !bytes.HasPrefix(body, []byte("{")) { // the configuration is JSON
				body = bytes.Clone(body)
				body[9]++ // the operating system in the header of gzip
			}
			return body
		}), "sha256"},
		{"a layer that is cut off", "kube-apiserver", at("/blobs/", func(body []byte) []byte {
			if !bytes.HasPrefix(body, []byte("{")) {
				return body[:len(body)/2]
			}
			return body
		}), "unexpected EOF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			site := published.Start(t, release, etcd, scripts(t, prints(release, etcd)))
			site.Change(c.change)
			refused(t, site, c.program, c.says)
		})
	}
}

// at changes the bodies whose path contains a part.
func at(part string, change func(body []byte) []byte) func(string, []byte) []byte {
	return func(path string, body []byte) []byte {
		if strings.Contains(path, part) {
			return change(body)
		}
		return body
	}
}

// refused checks that a program is not taken, nor compiled instead, and that nothing is kept.
func refused(t *testing.T, site *published.Site, program, says string) {
	t.Helper()
	for _, from := range []string{programs.Auto, programs.Published} {
		f := newFinder(t, from, site)
		_, err := f.Find(t.Context(), request(t, program))
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), program) {
			t.Errorf("%s: error %v, want one with %q", from, err, says)
		}
		var kept []string
		if err := filepath.WalkDir(f.CacheDir, func(path string, e fs.DirEntry, err error) error {
			if e.Name() == program {
				kept = append(kept, path)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if len(kept) > 0 {
			t.Errorf("%s: kept %q", from, kept)
		}
	}
}

func TestProgramsOfAnotherReleaseOrMachineAreRefused(t *testing.T) {
	for _, program := range []string{"kube-apiserver", "kubelet", "kubeadm", "kubectl", "etcd"} {
		t.Run(program, func(t *testing.T) {
			site := published.Start(t, release, etcd, scripts(t, prints("v1.24.4", "v3.5.4")))
			refused(t, site, program, "expected version v")
		})
	}
	t.Run("of another machine", func(t *testing.T) {
		paths := scripts(t, prints(release, etcd))
		if err := os.WriteFile(paths["kubelet"], []byte("\x7fELF\x02\x01\x01"), 0o755); err != nil {
			t.Fatal(err)
		}
		refused(t, published.Start(t, release, etcd, paths), "kubelet", "exec format error")
	})
}

func TestUnavailableProgramsAreCompiledInstead(t *testing.T) {
	site := published.Start(t, "v1.24.9", etcd, scripts(t, prints("v1.24.9", etcd)))
	closed := func(f *finder) { f.Registry, f.Downloads = refusing(t), "http://"+refusing(t) }
	for _, c := range []struct {
		name    string
		program string
		servers func(*finder)
		says    string
	}{
		{"the registry has no such image", "kube-apiserver", nil, "not found"},
		{"the site has no such file", "kubelet", nil, "404"},
		{"no server", "kubelet", closed, "connection refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, from := range []string{programs.Auto, programs.Published} {
				f := newFinder(t, from, site)
				if c.servers != nil {
					c.servers(f)
				}
				_, err := f.Find(t.Context(), request(t, c.program))
				var unavailable *programs.UnavailableError
				if from == programs.Published {
					if !errors.As(err, &unavailable) || !strings.Contains(err.Error(), c.says) {
						t.Errorf("error %v, want one with %q", err, c.says)
					}
					continue
				}
				// There is no go command to compile with.
				var compiling *build.Error
				if !errors.As(err, &compiling) {
					t.Errorf("error %v, want that of the compiler", err)
				}
				if len(f.notes) != 1 || !strings.HasSuffix(f.notes[0], "; compiling "+c.program) {
					t.Errorf("notes %q", f.notes)
				}
			}
		})
	}
}

// refusing returns a loopback address at which nothing listens.
func refusing(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestAddressesOfPublishedProgramsAreAuthenticated(t *testing.T) {
	f := newFinder(t, programs.Published, nil)
	f.Downloads = "http://downloads.example.com"
	_, err := f.Find(t.Context(), request(t, "kubelet"))
	if !problem.IsInvalid(err) || !strings.Contains(err.Error(), f.Downloads) {
		t.Errorf("error %v", err)
	}
}

func TestDirectoryHasAllPrograms(t *testing.T) {
	paths := scripts(t, prints("v1.24.9", etcd))
	f := newFinder(t, filepath.Dir(paths["kubelet"]), nil)
	found, err := f.Find(t.Context(), request(t, all...))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		if p := found[name]; p.Path != paths[name] || p.Origin != paths[name] || len(p.SHA256) != 64 {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if got := found["kubelet"].Version; got != "v1.24.9" {
		t.Errorf("kubelet %s", got)
	}
	for _, c := range []struct {
		name, program, version, etcd, says string
	}{
		{"another minor", "kubelet", "v1.25.0", etcd, "expected a program of Kubernetes 1.24, got v1.25.0"},
		{"another etcd", "etcd", release, "v3.4.1", "expected version v3.5.3, got v3.4.1"},
		{"a program that is missing", "kube-proxy", release, etcd, "no such file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Dir(scripts(t, prints(c.version, c.etcd))["kubelet"])
			_, err := newFinder(t, dir, nil).Find(t.Context(), request(t, c.program))
			if !problem.IsInvalid(err) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), dir) {
				t.Errorf("error %v, want one with %q", err, c.says)
			}
		})
	}
}

func TestEnvtestServesItsMinorOnly(t *testing.T) {
	site := published.Start(t, release, etcd, scripts(t, prints(release, etcd)))
	for version, used := range map[string]bool{"v1.24.9": true, "v1.25.0": false} {
		outputs := prints(version, etcd)
		delete(outputs, "kubelet") // envtest has none
		paths := scripts(t, outputs)
		f := newFinder(t, programs.Auto, site)
		f.Assets = filepath.Dir(paths["etcd"])
		found, err := f.Find(t.Context(), request(t, "kube-apiserver", "etcd", "kubelet"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"kube-apiserver", "etcd"} {
			if got := found[name].Path == paths[name]; got != used {
				t.Errorf("%s of envtest %s is used: %t", name, version, got)
			}
		}
		if got := found["kubelet"].Version; got != release {
			t.Errorf("kubelet %s, want the published one", got)
		}
	}
}

func TestSourceOfProgramsIsChecked(t *testing.T) {
	_, err := newFinder(t, "publish", nil).Find(t.Context(), request(t, "kubelet"))
	if !problem.IsInvalid(err) || !strings.Contains(err.Error(), `"publish"`) {
		t.Errorf("error %v", err)
	}
}
