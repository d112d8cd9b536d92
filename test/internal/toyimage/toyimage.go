//go:build linux

// Package toyimage makes images without a kube-scheduler.
package toyimage

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/artifact/sign"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// Registry starts an empty registry, and returns its address.
func Registry(t testing.TB) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(true),
		registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// Push pushes an image, and signs it with the private key in a file unless key is empty. predicate
// is in the signature. It returns the digest of the image.
func Push(t testing.TB, reference, key string, predicate []byte) (digest string) {
	t.Helper()
	platform := "linux/" + runtime.GOARCH
	content := run.WriteFile(t, "key", "signed with "+key+string(predicate))
	built, err := image.Build(t.Context(), image.Options{
		Base: image.Base{Busybox: "/bin/busybox"}, Platforms: []string{platform}, Entrypoint: []string{"/none"},
		Files: map[string][]image.File{platform: {{Path: "/key", Source: content}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		text, err := os.ReadFile(key)
		if err != nil {
			t.Fatal(err)
		}
		signer, err := sign.ParsePrivateKey(text)
		if err != nil {
			t.Fatal(err)
		}
		hex := strings.TrimPrefix(built.Digest, "sha256:")
		bundle, err := sign.Sign(t.Context(), signer, sign.NewStatement(sign.Signature, hex, predicate))
		if err == nil {
			err = built.Attach(built.Digest, sign.BundleType, bundle, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := image.Push(t.Context(), built, reference, nil); err != nil {
		t.Fatal(err)
	}
	return built.Digest
}
