package bundle

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

func TestImagesArePushedOutOfAnArchiveOrADirectory(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	const name = "localhost/team/kube-scheduler:v1.24.3"
	stage := t.TempDir()
	built, err := image.Build(t.Context(), image.Options{
		Base: image.Base{Empty: true}, Platforms: []string{"linux/amd64"},
		Files: map[string][]image.File{"linux/amd64": {{Path: "/a", Source: "push_test.go"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	directory, err := image.FileName(name)
	if err != nil {
		t.Fatal(err)
	}
	layout := filepath.Join(stage, filepath.FromSlash(imageDir), directory)
	if err := os.MkdirAll(filepath.Dir(layout), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := image.WriteLayout(t.Context(), built, name, layout); err != nil {
		t.Fatal(err)
	}
	files := tree(t, stage)
	dir := t.TempDir()
	file := bundleOf(t, "b.tar.zst", "", files)
	if err := unpack(t, file, dir); err != nil {
		t.Fatal(err)
	}
	s := testSession(t, dir)
	if err := build.Tag(dir, &build.Result{Info: build.Info{Release: "v1.24.3"}}, name); err != nil {
		t.Fatal(err)
	}
	for from, prefix := range map[string]string{file: host + "/a", dir: host + "/b/"} {
		pushed, err := Push(t.Context(), from, prefix, "", s)
		if err != nil {
			t.Fatal(err)
		}
		want := strings.TrimSuffix(prefix, "/") + "/team/kube-scheduler:v1.24.3"
		if len(pushed) != 1 || pushed[0].Reference != want || pushed[0].Digest != built.Digest {
			t.Errorf("%s: got %+v, want %s with %s", from, pushed, want, built.Digest)
		}
		if digest, err := crane.Digest(want, crane.Insecure); err != nil || digest != built.Digest {
			t.Errorf("%s in the registry: %s, %v, want %s", want, digest, err, built.Digest)
		}
		if result, found, err := build.FindByImage(dir, want); err != nil || !found || result.Info.Release != "v1.24.3" {
			t.Errorf("the build of %s: %+v, %v, %v", want, result, found, err)
		}
	}
	if _, err := Push(t.Context(), t.TempDir(), host, "", s); !problem.IsInvalid(err) {
		t.Errorf("an empty directory: got %v, want an error about the input", err)
	}
	more := tree(t, stage)
	for name := range files {
		if !strings.HasPrefix(name, path.Join(imageDir, directory)) {
			t.Errorf("unexpected file %s", name)
		}
	}
	more[imageDir+"/x/blobs/sha256/00"] = large("x")
	first := bundleOf(t, "first.tar", "", more)
	if _, err := Push(t.Context(), bundleOf(t, "later.tar", first, more), host, "", s); !problem.IsInvalid(err) {
		t.Errorf("a bundle without its images: got %v, want an error about the input", err)
	}
}
