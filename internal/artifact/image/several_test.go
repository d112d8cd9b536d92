package image

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func TestOneLayoutHasSeveralImages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "oci")
	l, err := NewLayout(dir)
	if err != nil {
		t.Fatal(err)
	}
	b := build(t, busyboxOptions(t))
	for _, tag := range []string{"my-scheduler:v1", "my-scheduler:v2"} {
		if err := l.add(t.Context(), b, tag); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the layout is in its place before it is complete")
	}
	if err := l.Commit(); err != nil {
		t.Fatal(err)
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var tags []string
	for _, d := range manifest.Manifests {
		tags = append(tags, d.Annotations[annotationRefName])
	}
	if diff := cmp.Diff([]string{"v1", "v2"}, tags); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	if _, err := NewLayout(dir); err == nil {
		t.Error("a layout replaces a directory with files")
	}
}

func TestDiscardedLayoutLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	l, err := NewLayout(filepath.Join(dir, "oci"))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Discard(); err != nil {
		t.Fatal(err)
	}
	if left := names(t, dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestArtifactIsPushedWithItsTypeAndItsReferrers(t *testing.T) {
	const mediaType = "application/vnd.example.v1+yaml"
	made, err := NewArtifact(mediaType, []byte("a: b\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := made.Attach(made.Digest, "application/vnd.example.signature", []byte("{}"), nil); err != nil {
		t.Fatal(err)
	}
	reference := answering(t, 0) + "/my-scheduler:releases"
	if _, err := Push(t.Context(), made, reference, keychain{"me", "secret"}); err != nil {
		t.Fatal(err)
	}
	tag, err := name.ParseReference(reference)
	if err != nil {
		t.Fatal(err)
	}
	options := remoteOptions(t.Context(), keychain{"me", "secret"})
	img, err := remote.Image(tag, options...)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if manifest.ArtifactType != mediaType || manifest.Subject != nil || len(manifest.Layers) != 1 {
		t.Errorf("got %+v", manifest)
	}
	referrers, err := remote.Referrers(tag.Context().Digest(made.Digest), options...)
	if err != nil {
		t.Fatal(err)
	}
	list, err := referrers.IndexManifest()
	if err != nil || len(list.Manifests) != 1 {
		t.Errorf("got %+v, %v", list, err)
	}
}
