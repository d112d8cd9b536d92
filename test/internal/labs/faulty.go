//go:build linux

package labs

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/build"
	"github.com/pmk-sched/pmk-sched/internal/image"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// Faulty returns the reference of an image whose kube-scheduler fails, which the node has: "crash" ends at once with status 7,
// "crash-later" after 5 s, "silent" does nothing. It reports that it is of the given version.
func (n *Node) Faulty(t testing.TB, behaviour, version string) string {
	t.Helper()
	reference := "localhost/" + behaviour + ":" + version
	n.once(t, n.NodeName+"."+reference, func() { n.loadFaulty(t, reference, behaviour, version) })
	return reference
}

func (n *Node) loadFaulty(t testing.TB, reference, behaviour, version string) {
	t.Helper()
	dir := t.TempDir()
	wrapper, archive := filepath.Join(dir, "wrapper"), filepath.Join(dir, "image.tar")
	cmd := exec.Command("go", "build", "-ldflags", "-X main.behaviour="+behaviour+" -X main.version="+version, "-o", wrapper,
		"./test/internal/labs/testdata/wrapper")
	cmd.Dir, cmd.Env = run.Root(), append(os.Environ(), "CGO_ENABLED=0")
	run.Command(t, cmd).OK(t)
	files := []image.File{{Path: image.SchedulerPath, Source: wrapper}}
	if behaviour == "crash-later" {
		real := filepath.Join(dir, "real")
		run.PMKSched(t, "build", "--branch", n.Release, "--binary", real).OK(t)
		files = append(files, image.File{Path: "/usr/local/bin/real", Source: real})
	}
	platform := build.Host().String()
	made, err := image.Build(t.Context(), image.Options{
		Base: image.Base{Busybox: "/bin/busybox"}, Platforms: []string{platform}, Files: map[string][]image.File{platform: files}, Entrypoint: []string{image.SchedulerPath},
	})
	if err == nil {
		err = image.WriteArchive(t.Context(), made, reference, archive)
	}
	if err != nil {
		t.Fatal(err)
	}
	n.Exec(t, "ctr", "-n", "k8s.io", "images", "import", archive).OK(t)
}
