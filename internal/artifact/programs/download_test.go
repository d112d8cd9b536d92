package programs

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Without a network a user waits for the compiler to start, not for a server.
func TestServersThatDoNotAnswerAreUnavailable(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections and sends nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	f := &Finder{
		Environment: build.Environment{CacheDir: t.TempDir()}, From: Published, reach: 20 * time.Millisecond,
		Registry: listener.Addr().String(), Downloads: "http://" + listener.Addr().String(),
	}
	for _, program := range []string{"kube-apiserver", "kubelet"} {
		_, err := f.Find(ctx, Request{Release: versions.Release{Major: 1, Minor: 24, Patch: 3}, Names: []string{program}})
		var unavailable *UnavailableError
		if !errors.As(err, &unavailable) || !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			t.Errorf("%s: got %v", program, err)
		}
	}
}

func TestDownloadsAreLimited(t *testing.T) {
	digest := strings.Repeat("0A", 32)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/file" {
			_, _ = w.Write([]byte("12345678"))
			return
		}
		// a digest after more bytes than a file with a checksum has
		_, _ = w.Write([]byte(strings.Repeat(" ", int(r.URL.Path[1]-'0')*maxChecksum/2) + digest))
	}))
	t.Cleanup(site.Close)
	to := filepath.Join(t.TempDir(), "file")
	if err := fetchFile(t.Context(), site.URL+"/file", to, 8); err != nil {
		t.Errorf("a file of the limit: %v", err)
	}
	if err := fetchFile(t.Context(), site.URL+"/file", to+"2", 7); err == nil ||
		!strings.Contains(err.Error(), "larger than") {
		t.Errorf("a file above the limit: got %v", err)
	}
	if err := fetchFile(t.Context(), site.URL+"/file", to, 8); !errors.Is(err, os.ErrExist) {
		t.Errorf("a file that exists: got %v", err)
	}
	if got, err := checksum(t.Context(), site.URL+"/0"); err != nil || got != strings.ToLower(digest) {
		t.Errorf("got the digest %q, %v", got, err)
	}
	if got, err := checksum(t.Context(), site.URL+"/2"); err == nil {
		t.Errorf("a checksum beyond the limit: got %q", got)
	}
}

// A checksum is only as good as the server that it comes from.
func TestPlainHTTPIsForLoopbackOnly(t *testing.T) {
	for address, accepted := range map[string]bool{
		"https://dl.example.com/": true, "https://dl.example.com/mirror": true, "http://127.0.0.1:80/": true,
		"http://dl.example.com/": false, "http://127.0.0.1.example.com/": false, "ftp://127.0.0.1/": false,
		"https:///path": false, "https://": false, "dl.example.com": false, "https://%zz/": false,
	} {
		if err := checkURL(address); (err == nil) != accepted {
			t.Errorf("%s: got %v, want accepted: %t", address, err, accepted)
		}
	}
	for registry, want := range map[string]string{
		"registry.example.com": "https://registry.example.com/v2/", "127.0.0.1:5000/mirror": "http://127.0.0.1:5000/v2/",
	} {
		if got := registryURL(registry); got != want {
			t.Errorf("registry %s: got %s, want %s", registry, got, want)
		}
	}
	plain := httptest.NewServer(http.RedirectHandler("http://dl.example.com/kubelet", http.StatusFound))
	t.Cleanup(plain.Close)
	if _, err := get(t.Context(), http.MethodGet, plain.URL); err == nil || !strings.Contains(err.Error(), "plain HTTP") &&
		!strings.Contains(err.Error(), "invalid address") {
		t.Errorf("redirected to plain HTTP: got %v", err)
	}
}
