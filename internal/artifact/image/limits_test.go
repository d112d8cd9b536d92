package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// allocated returns the bytes that do allocates, the freed ones included.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// pushLayer pushes an image of one layer to a registry, and returns its name.
func pushLayer(t *testing.T, write func(*tar.Writer) error) string {
	t.Helper()
	var packed bytes.Buffer
	gz := gzip.NewWriter(&packed)
	tw := tar.NewWriter(gz)
	for _, err := range []error{write(tw), tw.Close(), gz.Close()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(packed.Bytes())), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config.OS, config.Architecture = "linux", "amd64"
	if img, err = mutate.ConfigFile(img, config); err != nil {
		t.Fatal(err)
	}
	return pushImage(t, img)
}

func pushImage(t *testing.T, img v1.Image) string {
	t.Helper()
	ref, err := name.ParseReference(newRegistry(t) + "/x:1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, img); err != nil {
		t.Fatal(err)
	}
	return ref.String()
}

// zeros writes a file of zeros, which are packed 1,000 to 1.
func zeros(tw *tar.Writer, file string, size int64) error {
	if err := tw.WriteHeader(&tar.Header{Name: file, Mode: 0o755, Size: size}); err != nil {
		return err
	}
	_, err := io.CopyN(tw, zeroReader{}, size)
	return err
}

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// Whoever may push to a registry chooses what its images unpack to.
func TestImagesThatUnpackToMoreThanTheLimitsAreRefused(t *testing.T) {
	small := limits{program: 1 << 20, layers: 4 << 20, entries: 100, names: 4 << 10}
	const program = "usr/local/bin/kube-scheduler"
	for name, c := range map[string]struct {
		write func(*tar.Writer) error
		want  string
	}{
		"large program": {func(tw *tar.Writer) error { return zeros(tw, program, 2<<20) },
			"the program has more than 1048576 bytes"},
		"large layer": {func(tw *tar.Writer) error { return zeros(tw, "other", 64<<20) },
			"its layers have more than 4194304 bytes"},
		"files that are hidden": {func(tw *tar.Writer) error {
			for range 1000 {
				if err := tw.WriteHeader(&tar.Header{Name: "same"}); err != nil {
					return err
				}
			}
			return nil
		}, "it has more than 100 files"},
		"links": {func(tw *tar.Writer) error {
			for i := range 1000 {
				if err := tw.WriteHeader(&tar.Header{Name: fmt.Sprint(i), Typeflag: tar.TypeSymlink, Linkname: "x"}); err != nil {
					return err
				}
			}
			return nil
		}, "it has more than 100 files"},
		"long names": {func(tw *tar.Writer) error {
			for i := range 50 {
				h := &tar.Header{Name: fmt.Sprint(i, strings.Repeat("/d", 100)), Typeflag: tar.TypeLink, Linkname: "x"}
				if err := tw.WriteHeader(h); err != nil {
					return err
				}
			}
			return nil
		}, "the names of its files have more than 4096 bytes"},
		"a program of the limit": {func(tw *tar.Writer) error {
			return zeros(tw, program, 1<<20)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			src := Source{Reference: pushLayer(t, c.write), limits: small}
			dir := t.TempDir()
			to := filepath.Join(dir, "program")
			for _, extract := range []func() error{
				func() error {
					_, err := ExtractProgram(t.Context(), src, nil, "linux/amd64", to)
					return err
				},
				func() error { return ExtractFile(t.Context(), src, SchedulerPath, "linux/amd64", to) },
			} {
				var err error
				used := allocated(func() { err = extract() })
				if c.want == "" {
					if err != nil {
						t.Error(err)
					}
					continue
				}
				if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), src.Reference) {
					t.Errorf("got %v, want %s", err, c.want)
				}
				if left := names(t, dir); len(left) > 0 || used > 8<<20 {
					t.Errorf("%v is left, and %d bytes were allocated", left, used)
				}
			}
		})
	}
}

// The limits are for all layers together.
func TestLayersAreCountedTogether(t *testing.T) {
	layers := []tar.Header{{Name: "a", Typeflag: tar.TypeReg, Uname: strings.Repeat("a", 600)}}
	for count, accepted := range map[int]bool{1: true, 2: false} {
		img := layerImage(t, slices.Repeat([][]tar.Header{layers}, count)...)
		w := &walker{limits: limits{program: 1 << 20, layers: 3 << 10, entries: 9, names: 99}, links: map[string]string{},
			visit: func(string, *tar.Header, io.Reader) error { return nil }}
		if err := w.walk(t.Context(), img); (err == nil) != accepted {
			t.Errorf("%d layers: got %v, want accepted: %t", count, err, accepted)
		}
	}
}

func TestAsManyLinksAreFollowedAsInLinux(t *testing.T) {
	links := map[string]string{}
	for i := range 50 {
		links[fmt.Sprintf("link%d", i)] = fmt.Sprintf("link%d", i+1)
	}
	if got, err := followAll("link10", links); got != "link50" || err != nil {
		t.Errorf("40 links: got %q, %v", got, err)
	}
	if got, err := followAll("link9", links); err == nil {
		t.Errorf("41 links: got %q", got)
	}
}

func TestConfigurationOfAnImageIsLimited(t *testing.T) {
	o := busyboxOptions(t)
	o.Labels = map[string]string{"a": strings.Repeat("a", maxManifest)}
	dir := t.TempDir()
	layout := filepath.Join(dir, "layout")
	if err := WriteLayout(t.Context(), build(t, o), "localhost/a:1", layout); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(dir, "program")
	err := ExtractFile(t.Context(), Source{Layout: layout}, SchedulerPath, "linux/amd64", to)
	if err == nil || !strings.Contains(err.Error(), "the configuration has") {
		t.Errorf("got %v", err)
	}
}

func TestAuthoritiesOfARegistryAreCertificates(t *testing.T) {
	file := writeText(t, filepath.Join(t.TempDir(), "ca.pem"), "no certificate")
	for _, ca := range []string{file, file + ".none"} {
		_, err := (Registry{CA: ca}).options(t.Context())
		if !problem.IsInvalid(err) || !strings.Contains(err.Error(), "CA of the registry") {
			t.Errorf("%s: got %v", ca, err)
		}
	}
}
