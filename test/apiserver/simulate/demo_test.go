//go:build linux && cases

package simulate

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/artifact/programs"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/test/published"
)

// nobody is the number of a user and a group without rights.
const nobody = 65534

// demoOfForesight returns the demo as a command of a user without rights, in a directory of this
// user: others need not be able to read the repository.
func demoOfForesight(t *testing.T) *exec.Cmd {
	t.Helper()
	dir := t.TempDir()
	for _, file := range []string{"hack/demo-foresight.sh", "bin/pmk-sched"} {
		from := filepath.Join(run.Root(), file)
		if file == "bin/pmk-sched" {
			from = run.Program(t)
		}
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.Mkdir(filepath.Join(dir, filepath.Dir(file)), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file), text, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	demo := exec.CommandContext(run.Context(t), filepath.Join(dir, "hack/demo-foresight.sh"))
	demo.Dir = dir
	if os.Geteuid() != 0 {
		return demo // this user has none
	}
	if err := os.Chmod(filepath.Dir(dir), 0o711); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	demo.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	return demo
}

// The demo needs no root, and compiles nothing: there is no go command, and the cache is empty. The
// scheduler that packs leaves room for the pod that the default scheduler has none for, and nodes
// without pods.
func TestDemoOfForesightWritesAReportWithPublishedPrograms(t *testing.T) {
	t.Parallel()
	names := []string{"kube-scheduler", "kube-apiserver"}
	site, found := published.Compiled(t, apiserver.Release, names...)
	demo := demoOfForesight(t)
	etcd, err := exec.LookPath(programs.Etcd)
	if err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(demo.Dir, "foresight.html")
	demo.Env = []string{
		"PATH=" + filepath.Dir(etcd) + ":/usr/bin:/bin", "HOME=" + demo.Dir, "TMPDIR=" + demo.Dir,
		"PMK_SCHED_CACHE=" + filepath.Join(demo.Dir, "cache"), "PMK_SCHED_PROGRAMS=published",
		"PMK_SCHED_KUBERNETES_REGISTRY=" + site.Registry, "PMK_SCHED_KUBERNETES_DOWNLOADS=" + site.Downloads,
		"REPORT=" + page, "BRANCH=" + apiserver.Release,
	}
	out := run.Command(t, demo).OK(t)
	out.Prints(t, "pods: 168 bound, 1 pending", "145 of 145 pods placed on 24 nodes by packer",
		"default: 144 of 145 pods placed", "packer places 1 more pod", "NODE TYPE", page)
	for _, name := range names {
		out.Prints(t, name+" "+apiserver.Release+" from "+site.Registry+"/"+name+":"+apiserver.Release+"@sha256:",
			found[name].SHA256)
	}
	if strings.Contains(out.Stdout, "of empty nodes 0 → 0") || !strings.Contains(out.Stdout, "of empty nodes 0 → ") {
		t.Errorf("no node becomes empty: %s", out)
	}
	text, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(text), "training-0") {
		t.Errorf("the report has %d bytes, %v", len(text), err)
	}
}
