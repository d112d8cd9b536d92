package image

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func TestExtractReadsFromEverySource(t *testing.T) {
	dir := t.TempDir()
	archive, layout, registry := filepath.Join(dir, "i.tar"), filepath.Join(dir, "layout"), newRegistry(t)+"/x:1"
	o := bothPlatforms(t, Base{Reference: pushBase(t, bothBasePlatforms...)})
	both := build(t, o)
	o.Platforms = []string{"linux/amd64"}
	_, pushed := Push(t.Context(), both, registry, nil)
	if err := errors.Join(pushed,
		WriteArchive(t.Context(), build(t, o), ref, archive),
		WriteLayout(t.Context(), both, ref, layout),
	); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "kube-scheduler")
	for _, src := range []Source{{Archive: archive}, {Layout: layout}, {Reference: registry}} {
		for _, platform := range []string{"linux/amd64", "linux/arm64"} {
			for _, extract := range []func() error{
				func() error { return ExtractFile(t.Context(), src, SchedulerPath, platform, to) },
				func() error {
					_, err := ExtractProgram(t.Context(), src, nil, platform, to)
					return err
				},
			} {
				err := extract()
				if src.Archive != "" && platform == "linux/arm64" {
					wantError(t, err, true, "has no image for linux/arm64; it has linux/amd64")
					continue
				}
				if err != nil {
					t.Fatalf("%+v: %v", src, err)
				}
				if want := readText(t, o.Files[platform][0].Source); readText(t, to) != want {
					t.Errorf("%+v, %s: read %q", src, platform, readText(t, to))
				}
				if info, err := os.Stat(to); err != nil || info.Mode() != 0o755 {
					t.Errorf("mode %v, error %v", info.Mode(), err)
				}
			}
		}
	}
	if diff := cmp.Diff([]string{"kube-scheduler"}, names(t, filepath.Dir(to))); diff != "" {
		t.Errorf("files left (-want +got):\n%s", diff)
	}
}

// writeLayers writes an archive with links, and with files that upper layers
// change and take away. The content of a file is in Uname.
func writeLayers(t *testing.T) string {
	t.Helper()
	img := layerImage(t,
		[]tar.Header{
			{Name: "usr/bin/real", Typeflag: tar.TypeReg, Mode: 0o700, Uname: "lower"},
			{Name: "usr/bin/gone", Typeflag: tar.TypeReg, Mode: 0o644, Uname: "gone"},
			{Name: "opaque/old", Typeflag: tar.TypeReg, Mode: 0o644, Uname: "old"},
			{Name: "./data", Typeflag: tar.TypeReg, Mode: 0o644, Uname: "data"},
		},
		[]tar.Header{
			{Name: "bin", Typeflag: tar.TypeSymlink, Linkname: "usr/bin"},
			{Name: "usr/bin/real", Typeflag: tar.TypeReg, Mode: 0o755, Uname: "upper"},
			{Name: "usr/bin/link", Typeflag: tar.TypeSymlink, Linkname: "../../usr/bin/real"},
			{Name: "usr/bin/hard", Typeflag: tar.TypeLink, Linkname: "usr/bin/real"},
			{Name: "usr/bin/absolute", Typeflag: tar.TypeSymlink, Linkname: "/bin/link"},
			{Name: "usr/bin/round", Typeflag: tar.TypeSymlink, Linkname: "round"},
			{Name: "usr/bin/.wh.gone", Typeflag: tar.TypeReg},
			{Name: "opaque/.wh..wh..opq", Typeflag: tar.TypeReg},
		})
	tag, err := parseTag(ref)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "i.tar")
	if err := tarball.WriteToFile(file, tag, img); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestExtractFileFollowsLinksAsAContainerDoes(t *testing.T) {
	src := Source{Archive: writeLayers(t)}
	for file, want := range map[string]string{
		"/usr/bin/real": "upper", "/bin/real": "upper", "/bin/link": "upper", "/usr/bin/hard": "upper",
		"/bin/absolute": "upper", "/data": "data", "/bin/../data": "data",
	} {
		to := filepath.Join(t.TempDir(), "f")
		if err := ExtractFile(t.Context(), src, file, "linux/amd64", to); err != nil || readText(t, to) != want {
			t.Errorf("%s: %v", file, err)
		}
		if info, err := os.Stat(to); err != nil || (info.Mode() == 0o755) != (want == "upper") {
			t.Errorf("%s: mode %v, error %v", file, info.Mode(), err)
		}
	}
	for _, file := range []string{"/usr/bin/gone", "/opaque/old", "/usr/bin", "/nothing"} {
		to := filepath.Join(t.TempDir(), "f")
		err := ExtractFile(t.Context(), src, file, "linux/amd64", to)
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", file, err)
		}
		if left := names(t, filepath.Dir(to)); len(left) != 0 {
			t.Errorf("%s: left %v", file, left)
		}
	}
	err := ExtractFile(t.Context(), src, "/bin/round", "linux/amd64", filepath.Join(t.TempDir(), "f"))
	wantError(t, err, false, "read /bin/round from image", "too many links")
}

func TestExtractFileNeedsOneSource(t *testing.T) {
	err := ExtractFile(t.Context(), Source{}, SchedulerPath, "", filepath.Join(t.TempDir(), "f"))
	wantError(t, err, true, "one", "expected one base, got 0")
}

func TestLayerWithAnotherDigestIsRefused(t *testing.T) {
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	changed := false
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		inner.ServeHTTP(answer, r)
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		body := answer.Body.Bytes()
		// The configuration is JSON. Byte 9 of a layer is the operating system in the header of gzip.
		if changed && r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") && body[0] != '{' {
			body[9]++
		}
		_, _ = w.Write(body) // the client may have read enough
	}))
	t.Cleanup(s.Close)
	reference := strings.TrimPrefix(s.URL, "http://") + "/x:1"
	if _, err := Push(t.Context(), build(t, busyboxOptions(t)), reference, nil); err != nil {
		t.Fatal(err)
	}
	src, to := Source{Reference: reference}, filepath.Join(t.TempDir(), "kube-scheduler")
	for _, changed = range []bool{false, true} {
		_, program := ExtractProgram(t.Context(), src, nil, "linux/amd64", to)
		for name, err := range map[string]error{
			"program": program, "file": ExtractFile(t.Context(), src, SchedulerPath, "linux/amd64", to),
		} {
			if (err != nil) != changed {
				t.Errorf("%s of a layer that is changed (%t): error %v", name, changed, err)
			}
			if err != nil {
				wantError(t, err, false, "sha256")
			}
		}
	}
}
