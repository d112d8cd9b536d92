package image

import (
	"archive/tar"
	"context"
	"debug/elf"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

func TestImageHoldsSchedulerOnBusybox(t *testing.T) {
	b := build(t, busyboxOptions(t))
	img := b.Images["linux/amd64"]
	if err := validate.Image(img); err != nil {
		t.Fatal(err)
	}
	if b.Index != nil || !strings.HasPrefix(b.Digest, "sha256:") {
		t.Errorf("index %v, digest %q", b.Index, b.Digest)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	want := v1.Config{
		User:       "65532:65532",
		Entrypoint: []string{"/usr/local/bin/kube-scheduler"},
		Env:        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		Labels: map[string]string{
			"org.opencontainers.image.title": "kube-scheduler", "org.opencontainers.image.version": "",
			"org.opencontainers.image.source": "",
			"pmk-sched.io/release":            "v1.24.3", "pmk-sched.io/plugins": "", "pmk-sched.io/source": "",
		},
	}
	if diff := cmp.Diff(want, config.Config); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	if config.OS != "linux" || config.Architecture != "amd64" || !config.Created.Equal(time.Unix(0, 0)) ||
		len(config.History) != 3 {
		t.Errorf("configuration: %+v", config)
	}
	manifest, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if manifest.MediaType != types.OCIManifestSchema1 || manifest.Config.MediaType != types.OCIConfigJSON ||
		manifest.Layers[0].MediaType != types.OCILayer {
		t.Errorf("media types: %+v", manifest)
	}
	if diff := cmp.Diff(map[string]string{LabelRelease: "v1.24.3"}, manifest.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}

// layerNames lists a layer as "mode owner name -> link", and checks the properties that all entries
// share.
func layerNames(t *testing.T, layer v1.Layer) []string {
	t.Helper()
	r, err := layer.Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var list []string
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		if !h.ModTime.Equal(time.Unix(0, 0)) || h.Uname != "" || h.Gname != "" || h.Uid != h.Gid {
			t.Errorf("%s: time %v, owner %s:%s %d:%d", h.Name, h.ModTime, h.Uname, h.Gname, h.Uid, h.Gid)
		}
		line := strings.Join([]string{h.FileInfo().Mode().String(), h.Name}, " ")
		if h.Uid != 0 {
			line += " nonroot"
		}
		if h.Linkname != "" {
			line += " -> " + h.Linkname
		}
		list = append(list, line)
	}
}

func TestLayersAreSortedAndOwnedByRoot(t *testing.T) {
	layers, err := build(t, busyboxOptions(t)).Images["linux/amd64"].Layers()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"drwxr-xr-x usr/", "drwxr-xr-x usr/local/", "drwxr-xr-x usr/local/bin/",
		"-rwxr-xr-x usr/local/bin/kube-scheduler"}
	if diff := cmp.Diff(want, layerNames(t, layers[1])); diff != "" {
		t.Errorf("layer of files (-want +got):\n%s", diff)
	}
	base := layerNames(t, layers[0])
	for _, line := range []string{
		"-rwxr-xr-x bin/busybox", "Lrwxrwxrwx bin/sh -> busybox", "Lrwxrwxrwx bin/[ -> busybox",
		"-rw-r--r-- etc/passwd", "dtrwxrwxrwx tmp/", "drwxr-xr-x home/nonroot/ nonroot",
	} {
		if !slices.Contains(base, line) {
			t.Errorf("layer of busybox lacks %q:\n%s", line, strings.Join(base, "\n"))
		}
	}
}

// An image of upstream's shape has no shell.
func TestEmptyBaseHasNoPrograms(t *testing.T) {
	o := busyboxOptions(t)
	o.Base = Base{Empty: true}
	img := build(t, o).Images["linux/amd64"]
	if err := validate.Image(img); err != nil {
		t.Fatal(err)
	}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, layer := range layers {
		names = append(names, layerNames(t, layer)...)
	}
	all := strings.Join(names, "\n")
	if strings.Contains(all, " bin/") || !strings.Contains(all, "etc/passwd") ||
		!strings.Contains(all, "usr/local/bin/kube-scheduler") {
		t.Errorf("files of the image:\n%s", all)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Architecture != "amd64" || len(config.Config.Cmd) != 0 {
		t.Errorf("configuration: %+v", config)
	}
}

func TestSameInputGivesSameDigestFromAnyDirectory(t *testing.T) {
	first, second := busyboxOptions(t), busyboxOptions(t)
	later := time.Now().Add(time.Hour)
	source := second.Files["linux/amd64"][0].Source
	if err := errors.Join(os.Chtimes(source, later, later), os.Chmod(source, 0o711)); err != nil {
		t.Fatal(err)
	}
	if first, second := build(t, first), build(t, second); first.Digest != second.Digest {
		t.Errorf("digests differ: %s, %s", first.Digest, second.Digest)
	}
	other := busyboxOptions(t)
	other.Labels[LabelRelease] = "v1.24.4"
	if first, other := build(t, first), build(t, other); first.Digest == other.Digest {
		t.Error("the digest does not depend on the labels")
	}
	base := pushBase(t, bothBasePlatforms...)
	forth, back := bothPlatforms(t, Base{Reference: base}), bothPlatforms(t, Base{Reference: base})
	slices.Reverse(back.Platforms)
	if forth, back := build(t, forth), build(t, back); forth.Digest != back.Digest {
		t.Errorf("digests of the index differ: %s, %s", forth.Digest, back.Digest)
	}
}

func TestImageOfTwoPlatformsKeepsWhatTheBaseSets(t *testing.T) {
	base := pushBase(t, bothBasePlatforms...)
	o := bothPlatforms(t, Base{Reference: base})
	o.Env = []string{"PATH=/usr/local/bin", "NEW=1"}
	b := build(t, o)
	if err := validate.Index(b.Index); err != nil {
		t.Fatal(err)
	}
	manifest, err := b.Index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	platforms := []string{}
	for _, d := range manifest.Manifests {
		platforms = append(platforms, d.Platform.String())
	}
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64/v8"}, platforms); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
	config, err := b.Images["linux/arm64"].ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	want := v1.Config{
		User: DefaultUser, Entrypoint: []string{SchedulerPath}, Env: []string{"PATH=/usr/local/bin", "KEEP=1", "NEW=1"},
		Labels: o.Labels,
	}
	want.Labels["of"] = "base"
	if diff := cmp.Diff(want, config.Config); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	layers, err := b.Images["linux/arm64"].Manifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range layers.Layers {
		if l.MediaType != types.OCILayer {
			t.Errorf("layer %s is %s", l.Digest, l.MediaType)
		}
	}
	if layers.Annotations[annotationBaseName] != base || layers.Annotations[annotationBaseDigest] == "" {
		t.Errorf("annotations: %v", layers.Annotations)
	}
}

// The tag of a base may move. The reference by digest gives the same image again, for several
// platforms and for one.
func TestBaseByDigestGivesTheSameImageAgain(t *testing.T) {
	tag := pushBase(t, bothBasePlatforms...)
	for _, platforms := range [][]string{{"linux/amd64", "linux/arm64"}, {"linux/arm64"}} {
		o := bothPlatforms(t, Base{Reference: tag})
		o.Platforms = platforms
		first := build(t, o)
		repository, digest, found := strings.Cut(first.Base, "@sha256:")
		if !found || !strings.HasPrefix(tag, repository+":") || len(digest) != 64 {
			t.Fatalf("the base of %s is %q", tag, first.Base)
		}
		o.Base.Reference = first.Base
		again := build(t, o)
		if again.Base != first.Base {
			t.Errorf("the base of the second is %q", again.Base)
		}
		for _, platform := range platforms {
			one, two := configName(t, first, platform), configName(t, again, platform)
			if one != two {
				t.Errorf("%s: the images differ: %s, %s", platform, one, two)
			}
		}
	}
	if local := build(t, busyboxOptions(t)); local.Base != "" {
		t.Errorf("the base of an image without a registry is %q", local.Base)
	}
}

// configName is the digest of an image's configuration, which contains the digests of all layers.
func configName(t *testing.T, b *Built, platform string) v1.Hash {
	t.Helper()
	digest, err := b.Images[platform].ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func TestBuildWithoutEntrypointKeepsThatOfTheBase(t *testing.T) {
	o := bothPlatforms(t, Base{Reference: pushBase(t, bothBasePlatforms...)})
	o.Platforms, o.Entrypoint, o.User = []string{"linux/amd64"}, nil, "0:0"
	config, err := build(t, o).Images["linux/amd64"].ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if c := config.Config; c.Entrypoint[0] != "/init" || c.Cmd[0] != "sh" || c.User != "0:0" {
		t.Errorf("configuration: %+v", c)
	}
}

func TestBuildRefusesInvalidInput(t *testing.T) {
	dir := t.TempDir()
	busybox := func(machine elf.Machine, progType elf.ProgType, text string) Base {
		return Base{Busybox: writeProgram(t, filepath.Join(t.TempDir(), "busybox"), machine, progType, text)}
	}
	amd64Only := pushBase(t, bothBasePlatforms[0])
	scheduler := busyboxOptions(t).Files["linux/amd64"][0].Source
	for name, c := range map[string]struct {
		change func(*Options)
		want   []string
	}{
		"no platform": {func(o *Options) { o.Platforms = nil }, []string{"a platform is required"}},
		"malformed platform": {func(o *Options) { o.Platforms = []string{"amd64"} },
			[]string{`invalid platform "amd64"`, "hint: use the form linux/amd64"}},
		"no file":       {func(o *Options) { o.Files = nil }, []string{"the image for linux/amd64 has no files"}},
		"relative path": {func(o *Options) { o.Files["linux/amd64"][0].Path = "bin/x" }, []string{"not absolute"}},
		"path twice": {func(o *Options) {
			o.Files["linux/amd64"] = append(o.Files["linux/amd64"],
				File{Path: "/usr/local/bin/../bin/kube-scheduler", Source: scheduler})
		}, []string{"has two files /usr/local/bin/kube-scheduler"}},
		"missing file": {func(o *Options) { o.Files["linux/amd64"][0].Source = filepath.Join(dir, "none") },
			[]string{"none", "no such file"}},
		"layout": {func(o *Options) { o.Files["linux/amd64"][0].Source = dir }, []string{"not a regular file"}},
		"file of another platform": {func(o *Options) {
			o.Files["linux/amd64"][0].Source = writeProgram(t, filepath.Join(dir, "s"), elf.EM_AARCH64, elf.PT_LOAD, "")
		}, []string{"expected a program for linux/amd64, got linux/arm64"}},
		"no base":        {func(o *Options) { o.Base = Base{} }, []string{"expected one base, got 0"}},
		"two bases":      {func(o *Options) { o.Base.Reference = "busybox" }, []string{"expected one base, got 2"}},
		"malformed base": {func(o *Options) { o.Base = Base{Reference: "Busy Box"} }, []string{`image name "Busy Box"`}},
		"missing busybox": {func(o *Options) { o.Base.Busybox = filepath.Join(dir, "none") },
			[]string{"not found", "apt-get install busybox-static"}},
		"busybox is a script": {func(o *Options) { o.Base.Busybox = writeText(t, filepath.Join(dir, "b"), "#!/bin/sh\n") },
			[]string{"not a Linux program", "apt-get install busybox-static"}},
		"busybox is dynamic": {func(o *Options) { o.Base = busybox(elf.EM_X86_64, elf.PT_INTERP, "BusyBox") },
			[]string{"dynamically linked", "apt-get install busybox-static"}},
		"busybox of another architecture": {func(o *Options) { o.Base = busybox(elf.EM_S390, elf.PT_LOAD, "BusyBox") },
			[]string{"expected a program for linux/amd64, got linux/s390x"}},
		"busybox of an unknown architecture": {func(o *Options) { o.Base = busybox(elf.EM_SPARC, elf.PT_LOAD, "BusyBox") },
			[]string{"got an unknown platform (EM_SPARC)"}},
		"busybox is something else": {func(o *Options) { o.Base = busybox(elf.EM_X86_64, elf.PT_LOAD, "toolbox") },
			[]string{"not busybox"}},
		"busybox for two platforms": {func(o *Options) {
			both := bothPlatforms(t, o.Base)
			o.Platforms, o.Files = both.Platforms, both.Files
		}, []string{"it is for linux/amd64", "cannot be the base for linux/amd64 and linux/arm64"}},
		"platform the base lacks": {func(o *Options) {
			*o = bothPlatforms(t, Base{Reference: amd64Only})
		}, []string{"has no image for linux/arm64; it has linux/amd64"}},
		"archive that is none": {func(o *Options) { o.Base = Base{Archive: scheduler} },
			[]string{"read docker archive " + scheduler, "docker save"}},
		"archive missing": {func(o *Options) { o.Base = Base{Archive: filepath.Join(dir, "none.tar")} },
			[]string{"none.tar", "no such file"}},
		"layout that is none": {func(o *Options) { o.Base = Base{Layout: dir} }, []string{"read OCI layout " + dir}},
	} {
		t.Run(name, func(t *testing.T) {
			o := busyboxOptions(t)
			c.change(&o)
			b, err := Build(t.Context(), o)
			wantError(t, err, true, c.want...)
			if b != nil {
				t.Error("there is an image in spite of the error")
			}
		})
	}
}

func TestBuildStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, base := range map[string]Base{"busybox": busyboxOptions(t).Base,
		"registry": {Reference: pushBase(t, bothBasePlatforms...)}} {
		o := busyboxOptions(t)
		o.Base = base
		if _, err := Build(ctx, o); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBaseFromArchiveAndLayout(t *testing.T) {
	o := busyboxOptions(t)
	dir := t.TempDir()
	b := build(t, o)
	archive, layout := filepath.Join(dir, "base.tar"), filepath.Join(dir, "base")
	if err := errors.Join(
		WriteArchive(t.Context(), b, "localhost/base:1", archive),
		WriteLayout(t.Context(), b, "localhost/base:1", layout),
	); err != nil {
		t.Fatal(err)
	}
	zipped := gzipFile(t, archive)
	digests := map[string]bool{}
	for _, s := range []string{archive, zipped, layout} {
		base, err := ParseBase(s)
		if err != nil {
			t.Fatal(err)
		}
		o.Base = base
		b := build(t, o)
		if err := validate.Image(b.Images["linux/amd64"]); err != nil {
			t.Errorf("%s: %v", s, err)
		}
		digests[b.Digest] = true
	}
	if len(digests) != 1 {
		t.Errorf("the same base in different forms gives different images: %v", digests)
	}
}
