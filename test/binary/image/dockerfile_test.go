package image_test

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/layout"

	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
)

// buildDockerfile builds the repository's Dockerfile on the docker archive base,
// which holds localhost/base:1, and returns the image as an OCI layout.
func buildDockerfile(t *testing.T, base string, labels map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	policy := writeFile(t, filepath.Join(dir, "policy.json"), `{"default": [{"type": "insecureAcceptAnything"}]}`)
	scheduler := filepath.Join(dir, "context", "kube-scheduler")
	if err := image.ExtractFile(t.Context(), image.Source{Archive: base}, "/bin/busybox", "",
		writeFile(t, scheduler, "")); err != nil {
		t.Fatal(err)
	}
	dockerfile, err := filepath.Abs("../../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	storage := []string{"--storage-driver", "vfs", "--root", filepath.Join(dir, "root"), "--runroot",
		filepath.Join(dir, "runroot")}
	buildah := func(args ...string) { run(t, dir, "buildah", slices.Concat(storage, args)...) }
	buildah("pull", "--signature-policy", policy, "docker-archive:"+base)
	args := []string{"bud", "--pull-never", "--isolation", "chroot", "--signature-policy", policy,
		"--identity-label=false",
		"-f", dockerfile, "-t", "localhost/built:1", "--build-arg", "BASE=localhost/base:1"}
	for arg, label := range map[string]string{
		"TITLE": image.LabelTitle, "VERSION": image.LabelVersion, "URL": image.LabelSource,
		"RELEASE": image.LabelRelease, "PLUGINS": image.LabelPlugins, "ORIGIN": image.LabelOrigin,
	} {
		args = append(args, "--build-arg", arg+"="+labels[label])
	}
	buildah(append(args, filepath.Dir(scheduler))...)
	built := filepath.Join(dir, "built")
	buildah("push", "--signature-policy", policy, "localhost/built:1", "oci:"+built)
	return built
}

func TestDockerfileMakesTheSameImage(t *testing.T) {
	needs(t, "buildah busybox-static", "buildah", busybox)
	o := options()
	// The base alone, as our image makes it: an image with another file in it.
	base := o
	base.Entrypoint, base.Labels, base.Annotations = nil, nil, nil
	base.Files = map[string][]image.File{host: {{Path: "/etc/hostname",
		Source: writeFile(t, filepath.Join(t.TempDir(), "hostname"), "base\n"), Mode: 0o644}}}
	archive := filepath.Join(t.TempDir(), "base.tar")
	if err := image.WriteArchive(t.Context(), build(t, base), "localhost/base:1", archive); err != nil {
		t.Fatal(err)
	}
	o.Base = image.Base{Archive: archive}
	ours := build(t, o)

	index, err := layout.ImageIndexFromPath(buildDockerfile(t, archive, o.Labels))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(configOf(t, ours.Images[host]), configOf(t, theirs)); diff != "" {
		t.Errorf("configuration (-build +Dockerfile):\n%s", diff)
	}
	want, got := filesOf(t, ours.Images[host]), filesOf(t, theirs)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("names (-build +Dockerfile):\n%s", diff)
	}
	for name, f := range want {
		if f != got[name] {
			t.Errorf("%s differs: %v %d:%d, %d bytes; Dockerfile: %v %d:%d, %d bytes", name,
				f.Mode, f.UID, f.GID, len(f.Content), got[name].Mode, got[name].UID, got[name].GID, len(got[name].Content))
		}
	}
	if f := got["usr/local/bin/kube-scheduler"]; f.Mode != 0o755 || f.UID != 0 || f.Content == "" {
		t.Errorf("kube-scheduler: %v %d:%d, %d bytes", f.Mode, f.UID, f.GID, len(f.Content))
	}
}
