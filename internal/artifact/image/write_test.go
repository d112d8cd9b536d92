package image

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

const ref = "localhost/my-scheduler:v1"

func gzipFile(t *testing.T, file string) string {
	t.Helper()
	f, err := os.Create(file + ".gz")
	if err != nil {
		t.Fatal(err)
	}
	gz := gzip.NewWriter(f)
	_, err = io.WriteString(gz, readText(t, file))
	if err := errors.Join(err, gz.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}

func diffIDs(t *testing.T, img v1.Image) []v1.Hash {
	t.Helper()
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	return config.RootFS.DiffIDs
}

func TestArchiveHasTheImageUnderItsCanonicalName(t *testing.T) {
	b := build(t, busyboxOptions(t))
	file := filepath.Join(t.TempDir(), "image.tar")
	writeText(t, file, "what was there before")
	if err := WriteArchive(t.Context(), b, "my-scheduler:v1", file); err != nil {
		t.Fatal(err)
	}
	manifest, err := tarball.LoadManifest(archiveOpener(file))
	if err != nil {
		t.Fatal(err)
	}
	canonical, err := CanonicalName("my-scheduler:v1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{canonical}, manifest[0].RepoTags); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	tag, err := name.NewTag("my-scheduler:v1")
	if err != nil {
		t.Fatal(err)
	}
	img, err := tarball.ImageFromPath(file, &tag)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(img); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(diffIDs(t, b.Images["linux/amd64"]), diffIDs(t, img)); diff != "" {
		t.Errorf("layers (-want +got):\n%s", diff)
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o644 {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
}

func TestLayoutHasAllPlatforms(t *testing.T) {
	b := build(t, bothPlatforms(t, Base{Reference: pushBase(t, bothBasePlatforms...)}))
	dir := filepath.Join(t.TempDir(), "layout")
	for range 2 {
		if err := WriteLayout(t.Context(), b, ref, dir); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"layout"}, names(t, filepath.Dir(dir))); diff != "" {
		t.Errorf("files left (-want +got):\n%s", diff)
	}
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(top); err != nil {
		t.Error(err)
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Manifests) != 1 || manifest.Manifests[0].Digest.String() != b.Digest {
		t.Errorf("manifests: %+v", manifest.Manifests)
	}
	want := map[string]string{annotationRefName: "v1", annotationContainerdName: ref}
	if diff := cmp.Diff(want, manifest.Manifests[0].Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}

func TestLayoutOfOnePlatformHasTheImage(t *testing.T) {
	b := build(t, busyboxOptions(t))
	dir := t.TempDir() // there, but empty
	if err := WriteLayout(t.Context(), b, ref, dir); err != nil {
		t.Fatal(err)
	}
	found, err := layoutCandidates(dir)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := found[0].image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if digest.String() != b.Digest || found[0].platform.String() != "linux/amd64" || len(found) != 1 {
		t.Errorf("found %v, %s, want %s", found, digest, b.Digest)
	}
}

func TestWritersRefuseToOverwriteOtherFiles(t *testing.T) {
	one, dir := build(t, busyboxOptions(t)), t.TempDir()
	two := build(t, bothPlatforms(t, Base{Reference: pushBase(t, bothBasePlatforms...)}))
	archive := func(b *Built, ref, file string) error { return WriteArchive(t.Context(), b, ref, file) }
	layout := func(b *Built, ref, dir string) error { return WriteLayout(t.Context(), b, ref, dir) }
	taken, other := filepath.Join(dir, "taken"), filepath.Join(dir, "other")
	writeText(t, filepath.Join(taken, "file"), "precious")
	if err := layout(one, "localhost/other:v1", other); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		write  func(*Built, string, string) error
		b      *Built
		ref    string
		target string
		want   []string
	}{
		"archive of two platforms": {archive, two, ref, filepath.Join(dir, "i.tar"),
			[]string{"has one platform, the image has linux/amd64, linux/arm64", "OCI layout directory"}},
		"archive over a directory": {archive, one, ref, dir, []string{"it is a directory"}},
		"archive over a device":    {archive, one, ref, os.DevNull, []string{"not a regular file"}},
		"archive in no directory": {archive, one, ref, filepath.Join(dir, "none", "i.tar"),
			[]string{"create the directory first"}},
		"archive without a name": {archive, one, "", filepath.Join(dir, "i.tar"),
			[]string{`image name ""`, "hint: use NAME:TAG"}},
		"archive named by a digest": {archive, one, "a@" + one.Digest, filepath.Join(dir, "i.tar"),
			[]string{"must have a tag"}},
		"layout over files":         {layout, one, ref, taken, []string{"not an OCI layout", "use a directory"}},
		"layout over a file":        {layout, one, ref, filepath.Join(taken, "file"), []string{"use a directory"}},
		"layout over another image": {layout, one, ref, other, []string{"it has another image, localhost/other:v1"}},
		"layout in no directory": {layout, one, ref, filepath.Join(dir, "none", "layout"),
			[]string{"create the parent directory first"}},
		"layout with a bad name": {layout, one, "localhost/My:v1", filepath.Join(dir, "l"),
			[]string{`image name "localhost/My:v1"`}},
	} {
		t.Run(name, func(t *testing.T) {
			before := names(t, dir)
			wantError(t, c.write(c.b, c.ref, c.target), true, c.want...)
			if diff := cmp.Diff(before, names(t, dir)); diff != "" {
				t.Errorf("files left (-before +after):\n%s", diff)
			}
		})
	}
	if readText(t, filepath.Join(taken, "file")) != "precious" {
		t.Error("a file was changed")
	}
}

func TestFailedWritesKeepTheOldFiles(t *testing.T) {
	o := busyboxOptions(t)
	dir := t.TempDir()
	archive, layout, base := filepath.Join(dir, "i.tar"), filepath.Join(dir, "layout"), filepath.Join(dir, "base.tar")
	if err := WriteArchive(t.Context(), build(t, o), "localhost/base:1", base); err != nil {
		t.Fatal(err)
	}
	o.Base = Base{Archive: base}
	b := build(t, o)
	if err := WriteLayout(t.Context(), b, ref, layout); err != nil {
		t.Fatal(err)
	}
	writeText(t, archive, "old")
	index := readText(t, filepath.Join(layout, "index.json"))
	check := func(t *testing.T, want error, errs ...error) {
		for _, err := range errs {
			if !errors.Is(err, want) {
				t.Errorf("error %v, want %v", err, want)
			}
		}
		if readText(t, archive) != "old" || readText(t, filepath.Join(layout, "index.json")) != index {
			t.Error("what was there has changed")
		}
		if diff := cmp.Diff([]string{"base.tar", "i.tar", "layout"}, names(t, dir)); diff != "" {
			t.Errorf("files left (-want +got):\n%s", diff)
		}
	}
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		check(t, context.Canceled, WriteArchive(ctx, b, ref, archive), WriteLayout(ctx, b, ref, layout),
			ExtractFile(ctx, Source{Archive: base}, SchedulerPath, "linux/amd64", archive))
	})
	t.Run("base gone", func(t *testing.T) {
		if err := os.Rename(base, base+".away"); err != nil {
			t.Fatal(err)
		}
		failed := []error{WriteArchive(t.Context(), b, ref, archive), WriteLayout(t.Context(), b, ref, layout)}
		if err := os.Rename(base+".away", base); err != nil {
			t.Fatal(err)
		}
		check(t, os.ErrNotExist, failed...)
	})
}

func TestArchiveFollowsALinkToItsFile(t *testing.T) {
	dir := t.TempDir()
	target, link := writeText(t, filepath.Join(dir, "target.tar"), "old"), filepath.Join(dir, "link.tar")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if err := WriteArchive(t.Context(), build(t, busyboxOptions(t)), ref, link); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", info, err)
	}
	if readText(t, target) == "old" {
		t.Error("the file behind the link was not written")
	}
}
