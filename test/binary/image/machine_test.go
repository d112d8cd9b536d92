// Package image_test holds tests that need root and programs of the machine: images in a real
// containerd, and the Dockerfile built by a real builder.
package image_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/artifact/sandbox"
)

// Programs of images run in a sandbox, which starts the test's own program.
func TestMain(m *testing.M) {
	if sandbox.Entering(os.Args) {
		os.Exit(sandbox.Enter(os.Args))
	}
	os.Exit(m.Run())
}

const busybox = "/bin/busybox"

var host = "linux/" + runtime.GOARCH

// needs fails the test, naming the Debian packages, where a program is missing.
func needs(t *testing.T, packages string, programs ...string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("this test needs root")
	}
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Fatalf("%v\nhint: apt-get install --no-install-recommends %s", err, packages)
		}
	}
}

// run runs a program and returns its standard output.
func run(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(cmd.Args, " "), err, stdout.String(), stderr.String())
	}
	return stdout.String()
}

// options returns the options of an image with a busybox as base, and also as the kube-scheduler,
// since any program will do.
func options() image.Options {
	labels := image.Description{
		Title: "kube-scheduler", Version: "v1.24.3-1", URL: "https://example.com/source", Release: "v1.24.3",
		Plugins: "loadaware,coscheduling", Origin: "k8s.io/kubernetes@v1.24.3",
	}.Labels()
	return image.Options{
		Base:        image.Base{Busybox: busybox},
		Platforms:   []string{host},
		Files:       map[string][]image.File{host: {{Path: image.SchedulerPath, Source: busybox}}},
		Entrypoint:  []string{image.SchedulerPath},
		Labels:      labels,
		Annotations: labels,
	}
}

func build(t *testing.T, o image.Options) *image.Built {
	t.Helper()
	b, err := image.Build(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func configOf(t *testing.T, img v1.Image) v1.Config {
	t.Helper()
	file, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	return file.Config
}

// file holds the properties of a file in an image that tests compare.
type file struct {
	Mode     os.FileMode
	UID, GID int
	Link     string
	Content  string
}

// filesOf reads the flattened files of an image.
func filesOf(t *testing.T, img v1.Image) map[string]file {
	t.Helper()
	r := mutate.Extract(img)
	defer r.Close()
	files := map[string]file{}
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		files[path.Clean(h.Name)] = file{h.FileInfo().Mode(), h.Uid, h.Gid, h.Linkname, string(content)}
	}
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
