package image

import (
	"context"
	"debug/elf"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// hostBuilt is an image for this machine, and one for another.
func hostBuilt(t *testing.T) (here, elsewhere *Built) {
	t.Helper()
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	other := map[string]string{"amd64": "arm64", "arm64": "amd64"}[runtime.GOARCH]
	if other == "" {
		t.Fatalf("this test knows amd64 and arm64, not %s", runtime.GOARCH)
	}
	forArch := func(arch string) *Built {
		o := busyboxOptions(t)
		o.Platforms = []string{"linux/" + arch}
		dir := t.TempDir()
		o.Base = Base{Busybox: writeProgram(t, filepath.Join(dir, "busybox"), machines[arch], elf.PT_LOAD, "BusyBox")}
		o.Files = map[string][]File{"linux/" +
			arch: {{Path: SchedulerPath, Source: writeProgram(t, filepath.Join(dir, "s"), machines[arch], elf.PT_LOAD, "")}}}
		return build(t, o)
	}
	return forArch(runtime.GOARCH), forArch(other)
}

// onlyProgram makes a script the only program that can be found, so that a test can see its
// arguments and input.
func onlyProgram(t *testing.T, name, script string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if name != "" {
		writeText(t, filepath.Join(dir, name), "#!/bin/sh\ncd "+dir+"\n"+script)
		if err := os.Chmod(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	return dir
}

func TestDockerLoadsAnArchive(t *testing.T) {
	here, _ := hostBuilt(t)
	dir := onlyProgram(t, "docker", "echo \"$@\" >arguments; /bin/cat >archive\n")
	if err := loadDocker(t.Context(), here, "my-scheduler:v1"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("load --quiet\n", readText(t, filepath.Join(dir, "arguments"))); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	tag, err := parseTag("my-scheduler:v1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tarball.ImageFromPath(filepath.Join(dir, "archive"), &tag); err != nil {
		t.Error(err)
	}
}

func TestLoadErrorsNameWhatIsMissing(t *testing.T) {
	here, elsewhere := hostBuilt(t)
	socket := writeText(t, filepath.Join(t.TempDir(), "socket"), "")
	docker := func(b *Built) error { return loadDocker(t.Context(), b, ref) }
	containerd := func(b *Built) error { return LoadContainerd(t.Context(), b, ref, socket) }
	for _, c := range []struct {
		name            string
		program, script string
		load            func(*Built) error
		b               *Built
		invalid         bool
		want            []string
	}{
		{"no docker", "", "", docker, here, false, []string{"the docker program is not installed", "hint: install Docker"}},
		{"no engine", "docker", "echo Cannot connect to the Docker daemon at unix:///x. >&2; exit 1", docker, here, false,
			[]string{"the engine does not respond", "hint: start the Docker engine"}},
		{"docker fails", "docker", "echo one >&2; echo disk full >&2; exit 3", docker, here, false, []string{
			"load " + ref + " into Docker", "exit status 3", "one; disk full"}},
		{"docker, other architecture", "", "", docker, elsewhere, true, []string{
			"expected an image for linux/" + runtime.GOARCH, "hint: build for linux/" + runtime.GOARCH}},
		{"no ctr", "", "", containerd, here, false, []string{
			"the containerd client ctr is not installed", "install containerd"}},
		{"ctr fails", "ctr", "echo connection refused >&2; exit 1", containerd, here, false, []string{
			"load " + ref + " into containerd", "connection refused"}},
		{"import without effect", "ctr", "/bin/cat >archive", containerd, here, false, []string{
			"imported under another name"}},
		{"containerd, other architecture", "", "", containerd, elsewhere, true, []string{"expected an image for"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			onlyProgram(t, c.program, c.script)
			wantError(t, c.load(c.b), c.invalid, c.want...)
		})
	}
	err := LoadContainerd(t.Context(), here, ref, filepath.Join(t.TempDir(), "none.sock"))
	wantError(t, err, false, "none.sock", "check that containerd is running")
}

func TestLoadReportsAnUnreadableImage(t *testing.T) {
	here, _ := hostBuilt(t)
	base := filepath.Join(t.TempDir(), "base.tar")
	if err := WriteArchive(t.Context(), here, ref, base); err != nil {
		t.Fatal(err)
	}
	o := busyboxOptions(t)
	o.Base = Base{Archive: base}
	o.Platforms = []string{hostPlatform()}
	o.Files = map[string][]File{hostPlatform(): {{Path: "/script",
		Source: writeText(t, filepath.Join(t.TempDir(), "script"), "#!/bin/sh\n")}}}
	b := build(t, o)
	if err := os.Remove(base); err != nil {
		t.Fatal(err)
	}
	onlyProgram(t, "docker", "/bin/cat >/dev/null; exit 1")
	if err := loadDocker(t.Context(), b, ref); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), base) {
		t.Errorf("the missing base is not named: %v", err)
	}
}

func TestLoadStopsWithItsContext(t *testing.T) {
	here, _ := hostBuilt(t)
	onlyProgram(t, "docker", "exec /bin/sleep 600")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := loadDocker(ctx, here, ref); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
