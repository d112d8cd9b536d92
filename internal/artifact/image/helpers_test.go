package image

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// writeProgram writes the header of a program, followed by text. The program is never run, and no
// compiler for its architecture is needed.
func writeProgram(t *testing.T, file string, machine elf.Machine, progType elf.ProgType, text string) string {
	t.Helper()
	var b bytes.Buffer
	header := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT),
		Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1, Shentsize: 64,
	}
	for _, part := range []any{header, elf.Prog64{Type: uint32(progType), Filesz: 1, Memsz: 1}, []byte(text)} {
		if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	writeText(t, file, b.String())
	return file
}

func writeText(t *testing.T, file, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func readText(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// names lists a directory.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	list := []string{}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// busyboxOptions are the options for an image of a scheduler on a busybox, both for linux/amd64 and
// in a separate directory.
func busyboxOptions(t *testing.T) Options {
	t.Helper()
	dir := t.TempDir()
	return Options{
		Base: Base{Busybox: writeProgram(t, filepath.Join(dir, "busybox"), elf.EM_X86_64, elf.PT_LOAD,
			"BusyBox v1.35.0")},
		Platforms: []string{"linux/amd64"},
		Files: map[string][]File{"linux/amd64": {{
			Path:   SchedulerPath,
			Source: writeProgram(t, filepath.Join(dir, "kube-scheduler"), elf.EM_X86_64, elf.PT_LOAD, "scheduler for amd64"),
		}}},
		Entrypoint:  []string{SchedulerPath},
		Labels:      Description{Title: "kube-scheduler", Release: "v1.24.3"}.Labels(),
		Annotations: map[string]string{LabelRelease: "v1.24.3"},
	}
}

// bothPlatforms are the options for an image of two platforms on the base ref.
func bothPlatforms(t *testing.T, base Base) Options {
	t.Helper()
	o := busyboxOptions(t)
	o.Base = base
	o.Platforms = []string{"linux/arm64", "linux/amd64", "linux/arm64"}
	o.Files["linux/arm64"] = []File{{
		Path: SchedulerPath,
		Source: writeProgram(t, filepath.Join(t.TempDir(), "kube-scheduler"), elf.EM_AARCH64, elf.PT_LOAD,
			"scheduler for arm64"),
	}}
	return o
}

func build(t *testing.T, o Options) *Built {
	t.Helper()
	b, err := Build(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// newRegistry starts a registry in memory and returns its host and port.
func newRegistry(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// randomBase is an image with Docker's media types that could be a user's base.
func randomBase(t *testing.T, p v1.Platform) v1.Image {
	t.Helper()
	img, err := random.Image(512, 2)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config.OS, config.Architecture, config.Variant = p.OS, p.Architecture, p.Variant
	config.Config = v1.Config{
		Env: []string{"PATH=/bin", "KEEP=1"}, Cmd: []string{"sh"}, Entrypoint: []string{"/init"},
		Labels: map[string]string{"of": "base", LabelTitle: "base"},
	}
	if img, err = mutate.ConfigFile(img, config); err != nil {
		t.Fatal(err)
	}
	return img
}

var bothBasePlatforms = []v1.Platform{
	{OS: "linux", Architecture: "amd64"},
	{OS: "linux", Architecture: "arm64", Variant: "v8"},
}

// pushBase puts an index of random images for the platforms, with an attestation
// such as BuildKit adds, into a registry and returns its name.
func pushBase(t *testing.T, platforms ...v1.Platform) string {
	t.Helper()
	index := mutate.IndexMediaType(empty.Index, types.DockerManifestList)
	for _, p := range append(platforms, v1.Platform{OS: "unknown", Architecture: "unknown"}) {
		index = mutate.AppendManifests(index,
			mutate.IndexAddendum{Add: randomBase(t, p), Descriptor: v1.Descriptor{Platform: &p}})
	}
	ref, err := name.ParseReference(newRegistry(t) + "/base:1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(ref, index); err != nil {
		t.Fatal(err)
	}
	return ref.String()
}

// layerImage is an image of one uncompressed tar for each layer.
func layerImage(t *testing.T, layers ...[]tar.Header) v1.Image {
	t.Helper()
	img := empty.Image
	for _, headers := range layers {
		var b bytes.Buffer
		tw := tar.NewWriter(&b)
		for _, h := range headers {
			content := ""
			if h.Typeflag == tar.TypeReg && !strings.HasPrefix(filepath.Base(h.Name), ".wh.") {
				content = h.Uname // the content, for short
			}
			h.Uname, h.Size = "", int64(len(content))
			if err := tw.WriteHeader(&h); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(tw, content); err != nil {
				t.Fatal(err)
			}
		}
		if err := tw.Close(); err != nil {
			t.Fatal(err)
		}
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(b.Bytes())), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if img, err = mutate.AppendLayers(img, layer); err != nil {
			t.Fatal(err)
		}
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config.OS, config.Architecture = "linux", "amd64"
	config.Config.Cmd = []string{"sh", "/bin/link"}
	if img, err = mutate.ConfigFile(img, config); err != nil {
		t.Fatal(err)
	}
	return img
}

// wantError checks the text of an error, whether it is Invalid, and its hint.
func wantError(t *testing.T, err error, invalid bool, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	all := err.Error()
	var i interface{ Invalid() bool }
	if got := errors.As(err, &i) && i.Invalid(); got != invalid {
		t.Errorf("Invalid is %v, want %v: %v", got, invalid, err)
	}
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		all += "\nhint: " + h.Hint()
	}
	for _, part := range parts {
		if !strings.Contains(all, part) {
			t.Errorf("error does not say %q:\n%s", part, all)
		}
	}
}
