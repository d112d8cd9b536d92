// Package published runs a registry and a download site on loopback, with programs in the form in
// which Kubernetes publishes them.
package published

import (
	"crypto/sha256"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
)

// Site is a registry and a download site.
type Site struct {
	// Registry and Downloads are the values of --kubernetes-registry and --kubernetes-downloads.
	Registry, Downloads string

	mu     sync.Mutex
	change func(path string, body []byte) []byte
	count  int
}

// Programs are the paths of the programs of a release, by name.
type Programs map[string]string

// Start starts a site, until the test ends. The images are for this machine's architecture.
func Start(t testing.TB, release, etcdVersion string, programs Programs) *Site {
	t.Helper()
	s := &Site{}
	images := httptest.NewServer(s.handler(registry.New(registry.Logger(log.New(io.Discard, "", 0)))))
	files := http.NewServeMux()
	downloads := httptest.NewServer(s.handler(files))
	t.Cleanup(images.Close)
	t.Cleanup(downloads.Close)
	s.Registry, s.Downloads = strings.TrimPrefix(images.URL, "http://")+"/mirror", downloads.URL
	host := build.Host()
	for name, program := range programs {
		switch {
		case slices.Contains([]string{"kubelet", "kubeadm", "kubectl"}, name):
			serve(t, files, fmt.Sprintf("/release/%s/bin/linux/%s/%s", release, host.Arch, name), program)
		case name == "etcd":
			s.push(t, "etcd:"+strings.TrimPrefix(etcdVersion, "v")+"-0", in(name, program))
		case name == "kube-scheduler":
			all := in(name, program)
			if runner, has := programs["go-runner"]; has {
				all = append(all, image.File{Path: "/go-runner", Source: runner})
			}
			s.push(t, name+":"+release, all)
		case name != "go-runner":
			s.push(t, name+":"+release, in(name, program))
		}
	}
	return s
}

func in(name, program string) []image.File {
	return []image.File{{Path: "/usr/local/bin/" + name, Source: program}}
}

func (s *Site) push(t testing.TB, name string, files []image.File) {
	t.Helper()
	platform := build.Host().String()
	made, err := image.Build(t.Context(), image.Options{
		Base: image.Base{Empty: true}, Platforms: []string{platform}, Files: map[string][]image.File{platform: files},
		Entrypoint: []string{files[0].Path},
	})
	if err == nil {
		_, err = image.Push(t.Context(), made, s.Registry+"/"+name, nil)
	}
	if err != nil {
		t.Fatalf("push %s: %v", name, err)
	}
}

// serve serves a program and its checksum.
func serve(t testing.TB, files *http.ServeMux, at, program string) {
	t.Helper()
	file, err := os.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		t.Fatal(err)
	}
	files.HandleFunc(at, func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, program) })
	files.HandleFunc(at+".sha256", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, "%x", h.Sum(nil)) })
}

// Change changes the bodies that the site sends from now on. path is the path of the request.
func (s *Site) Change(change func(path string, body []byte) []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.change = change
}

// Requests returns the number of requests so far.
func (s *Site) Requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

func (s *Site) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.count++
		change := s.change
		s.mu.Unlock()
		if change == nil || r.Method != http.MethodGet {
			next.ServeHTTP(w, r)
			return
		}
		answer := httptest.NewRecorder()
		next.ServeHTTP(answer, r)
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		body := change(path.Clean(r.URL.Path), answer.Body.Bytes())
		w.WriteHeader(answer.Code) // with the length of the original body
		_, _ = w.Write(body)       // a client that refuses the rest closes the connection
	})
}
