package pack

import (
	"io"
	"log"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/versions"
)

// push pushes a new image and returns its digest.
func push(t *testing.T, reference string) string {
	t.Helper()
	img, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(reference)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(tag, img); err != nil {
		t.Fatal(err)
	}
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

// The plugins of a local build do not apply to an image that another machine pushed under the same
// tag.
func TestPluginsOfAMovedTagAreNotThoseOfTheLocalBuild(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	tag, cache := strings.TrimPrefix(server.URL, "http://")+"/s:v1", filepath.Join(t.TempDir(), "cache")
	built := &build.Result{Info: build.Info{Plugins: []plugins.Info{{Name: "Timestamp", Points: []string{"preBind"}}}}}
	if err := record(cache, built, tag, push(t, tag)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{1, 0} {
		located, err := Locate(t.Context(), LocateRequest{Reference: tag})
		if err != nil {
			t.Fatal(err)
		}
		contents, err := ReadPlugins(t.Context(), &session.Session{CacheDir: cache}, located.Name,
			versions.Release{Major: 1, Minor: 24, Patch: 3}, nil)
		if err != nil || len(contents.Plugins) != want {
			t.Errorf("got %+v, %v, want %d plugins", contents, err, want)
		}
		push(t, tag)
	}
}
