//go:build linux && labs

package airgap

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// packages are the Debian packages that a lab needs, as hack/deps.sh lists them.
const packages = "etcd-server,containerd,runc,containernetworking-plugins,iptables,iproute2,util-linux,mount,procps," +
	"busybox-static,ca-certificates"

// debian returns a Debian root with the packages, which is made once.
func debian(t *testing.T) string {
	t.Helper()
	cache, err := run.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(cache, "airgap-root")
	if _, err := os.Stat(root); err == nil {
		return root
	}
	part := root + ".part"
	if err := errors.Join(os.RemoveAll(part), os.MkdirAll(cache, 0o755)); err != nil {
		t.Fatal(err)
	}
	command(t, "debootstrap", "--variant=minbase", "--include="+packages, "bookworm", part)
	if err := os.Rename(part, root); err != nil {
		t.Fatal(err)
	}
	return root
}

// command runs a command and returns its output.
func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, &out)
	}
	return out.String()
}

func copyFile(t *testing.T, from, to string, mode fs.FileMode) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, mode)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestReleaseOfABundleIsBuiltDeployedAndSimulatedWithoutANetwork(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	command(t, "cp", "-a", debian(t), root)
	bundle := filepath.Join(root, "root", "bundle.tar.zst")
	// The plugin is another one than the test compiles without a network.
	created := command(t, run.Program(t), "bundle", "create", "--branch", "v1.24.3", "--with", "builtin:coscheduling",
		"--busybox", "/bin/busybox", "--archive", bundle)
	t.Log(created)
	copyFile(t, run.Program(t), filepath.Join(root, "usr", "local", "bin", "pmk-sched"), 0o755)
	copyFile(t, run.Binary(t, run.Lab), filepath.Join(root, "usr", "local", "bin", "pmk-lab"), 0o755)
	copyFile(t, filepath.Join("testdata", "work.sh"), filepath.Join(root, "root", "work.sh"), 0o644)

	out := command(t, "unshare", "--net", "--mount", "--pid", "--fork", "--propagation", "private",
		"sh", filepath.Join("testdata", "enter.sh"), root, "bash", "/root/work.sh")

	t.Log(out)
	for _, want := range []string{"compile kube-scheduler for linux/amd64", "bound by   air", "pods placed on"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output does not have %q", want)
		}
	}
}
