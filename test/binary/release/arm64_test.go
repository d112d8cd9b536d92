//go:build linux && releases

package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// emulate runs a program for arm64 with an empty home.
func emulate(t *testing.T, program string, args ...string) run.Result {
	t.Helper()
	cmd := exec.CommandContext(run.Context(t), "qemu-aarch64-static", append([]string{program}, args...)...)
	home := t.TempDir()
	cmd.Dir, cmd.Env = home, []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	return run.Command(t, cmd)
}

// checkARM64 runs the programs for arm64 in an emulator.
func checkARM64(t *testing.T, dist string) {
	program := filepath.Join(unpack(t, archive(dist, "linux_arm64")), "pmk-sched")
	emulate(t, program, "version").OK(t).Prints(t, version, "linux/arm64")
	emulate(t, program, "detect", "--server", "https://127.0.0.1:1").Fails(t, 1, "127.0.0.1:1", "connection refused")

	dir := t.TempDir()
	objects, snapshot := filepath.Join(dir, "node.yaml"), filepath.Join(dir, "cluster.tar.gz")
	if err := os.WriteFile(objects, []byte("apiVersion: v1\nkind: Node\nmetadata: {name: a}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	emulate(t, program, "snapshot", "--from", objects, "--to-file", snapshot).OK(t)
	emulate(t, program, "simulate", "pending", "--snapshot", snapshot, "--branch", "v1.24.3", "--programs", fakes(t)).
		Fails(t, 1, "kube-apiserver ended", "is a fake")

	extender := filepath.Join(unpack(t, filepath.Join(dist, "pmk-extender_"+version+"_linux_arm64.tar.gz")), "pmk-extender")
	emulate(t, extender, "--version").OK(t).Prints(t, version)
}

// fakes returns a directory with programs of a simulation that print their version, and otherwise
// fail: the simulation finds and starts them, and reports their output.
func fakes(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, printed := range map[string]string{
		"etcd": "etcd Version: 3.5.4", "kube-apiserver": "Kubernetes v1.24.3", "kube-scheduler": "Kubernetes v1.24.3",
	} {
		text := "#!/bin/sh\n[ \"$1\" = --version ] && echo '" + printed + "' && exit 0\necho \"$0 is a fake\" >&2\nexit 7\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// checkImages reads the OCI archives with another program, and runs the program for arm64 of each.
func checkImages(t *testing.T, dist string) {
	for name, path := range map[string]string{
		"pmk-sched_" + version: image.SelfPath, "pmk-sched_" + version + "-go": image.SelfPath,
		"pmk-extender_" + version: image.ExtenderPath,
	} {
		file := filepath.Join(dist, name+"_image.tar")
		layout := unpack(t, file)
		for _, platform := range []string{"linux/amd64", "linux/arm64"} {
			program := filepath.Join(t.TempDir(), "program")
			err := image.ExtractFile(t.Context(), image.Source{Layout: layout}, path, platform, program)
			if err != nil {
				t.Fatalf("%s for %s: %v", name, platform, err)
			}
			args := []string{"version"}
			if path == image.ExtenderPath {
				args = []string{"--version"}
			}
			if platform == "linux/arm64" {
				emulate(t, program, args...).OK(t).Prints(t, version)
			} else if got := output(t, program, args...); !strings.Contains(got, version) {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
	runImageWithGo(t, unpack(t, filepath.Join(dist, "pmk-sched_"+version+"-go_image.tar")))
}

// runImageWithGo runs the go command of the image for arm64.
func runImageWithGo(t *testing.T, layout string) {
	t.Helper()
	root := t.TempDir()
	for _, file := range []string{"bin/go", "VERSION", "go.env", "pkg/tool/linux_arm64/compile"} {
		to := filepath.Join(root, "go", file)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		err := image.ExtractFile(t.Context(), image.Source{Layout: layout}, "/usr/local/go/"+file, "linux/arm64", to)
		if err != nil {
			t.Fatal(err)
		}
	}
	emulate(t, filepath.Join(root, "go/bin/go"), "version").OK(t).Prints(t, "go version go1.", "linux/arm64")
	emulate(t, filepath.Join(root, "go/pkg/tool/linux_arm64/compile"), "-V").OK(t)
}
