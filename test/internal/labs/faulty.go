//go:build linux

package labs

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// Faulty returns the reference of an image whose kube-scheduler fails, which the node has: "crash"
// ends at once with status 7, "crash-later" after 2 s, "silent" does nothing. It reports that it is
// of the given version.
func (n *Node) Faulty(t testing.TB, behaviour, version string) string {
	t.Helper()
	reference := "localhost/" + behaviour + ":" + version
	for _, node := range n.runners(t) {
		node.once(t, node.NodeName+"."+reference, func() { node.loadFaulty(t, reference, behaviour, version) })
	}
	return reference
}

func (n *Node) loadFaulty(t testing.TB, reference, behaviour, version string) {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "wrapper")
	if err := os.WriteFile(program, wrapper(t, behaviour+" "+version), 0o755); err != nil {
		t.Fatal(err)
	}
	files := []image.File{{Path: image.SchedulerPath, Source: program}}
	if behaviour == "crash-later" {
		real := filepath.Join(dir, "real")
		run.PMKSched(t, "build", "--branch", n.Release, "--binary", real).OK(t)
		files = append(files, image.File{Path: "/usr/local/bin/real", Source: real})
	}
	n.Import(t, reference, image.SchedulerPath, files...)
}

// Import loads an image of files that starts one of them, on busybox, into the container runtime of
// the node.
func (n *Node) Import(t testing.TB, reference, entrypoint string, files ...image.File) {
	t.Helper()
	archive, platform := filepath.Join(t.TempDir(), "image.tar"), build.Host().String()
	made, err := image.Build(t.Context(), image.Options{
		Base: image.Base{Busybox: "/bin/busybox"}, Platforms: []string{platform},
		Files: map[string][]image.File{platform: files}, Entrypoint: []string{entrypoint},
	})
	if err == nil {
		err = image.WriteArchive(t.Context(), made, reference, archive)
	}
	if err != nil {
		t.Fatal(err)
	}
	n.Exec(t, "ctr", "-n", "k8s.io", "images", "import", archive).OK(t)
}

// setting is the text in the compiled wrapper that wrapper replaces.
const setting = "behaviour and version of the wrapper"

// wrapper returns the program that fails with a behaviour and a version. It is compiled once: a
// program that is started without its image can read neither from a file nor from an argument how
// to behave.
func wrapper(t testing.TB, value string) []byte {
	t.Helper()
	defer lock(t, "wrapper.lock")()
	file := filepath.Join(Dir(), "wrapper")
	if _, err := os.Stat(file); err != nil {
		cmd := exec.Command("go", "build", "-o", file, "./test/internal/labs/testdata/wrapper")
		cmd.Dir, cmd.Env = run.Root(), append(os.Environ(), "CGO_ENABLED=0")
		run.Command(t, cmd).OK(t)
	}
	program, err := os.ReadFile(file)
	if err != nil || bytes.Count(program, []byte(setting)) != 1 || len(value) > len(setting) {
		t.Fatalf("set %q in the wrapper: %d places, %v", value, bytes.Count(program, []byte(setting)), err)
	}
	return bytes.Replace(program, []byte(setting), fmt.Appendf(nil, "%-*s", len(setting), value), 1)
}
