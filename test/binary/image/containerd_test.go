package image_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
)

// startContainerd starts a containerd with all its files in a directory of the test, and returns
// its socket.
func startContainerd(t *testing.T) string {
	t.Helper()
	// Sockets have short names, so not in t.TempDir.
	dir, err := os.MkdirTemp("", "containerd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "c.sock")
	config := writeFile(t, filepath.Join(dir, "config.toml"), fmt.Sprintf(`version = 2
root = %q
state = %q
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
  address = %q
[plugins."io.containerd.internal.v1.opt"]
  path = %q
`, filepath.Join(dir, "root"), filepath.Join(dir, "state"), socket, filepath.Join(dir, "opt")))
	cmd := exec.Command("containerd", "--config", config)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
	})
	for range 300 {
		select {
		case <-ended:
			t.Fatalf("containerd ended: %v\n%s", cmd.ProcessState, said.String())
		case <-time.After(100 * time.Millisecond):
		}
		if exec.Command("ctr", "-a", socket, "version").Run() == nil {
			return socket
		}
	}
	t.Fatalf("containerd does not answer:\n%s", said.String())
	return ""
}

func TestContainerdHasTheImageUnderTheNameTheKubeletAsksFor(t *testing.T) {
	needs(t, "containerd busybox-static", "containerd", "ctr", busybox)
	socket := startContainerd(t)
	b := build(t, options())
	for _, ref := range []string{"localhost/my-scheduler:v1", "my-scheduler:v1"} {
		for range 2 {
			if err := image.LoadContainerd(t.Context(), b, ref, socket); err != nil {
				t.Fatal(err)
			}
		}
		name, err := image.CanonicalName(ref)
		if err != nil {
			t.Fatal(err)
		}
		listed := run(t, "", "ctr", "-a", socket, "-n", "k8s.io", "images", "ls", "-q")
		if !slices.Contains(strings.Fields(listed), name) {
			t.Errorf("%s is not among the images:\n%s", name, listed)
		}
		dir := t.TempDir()
		to := filepath.Join(dir, "kube-scheduler")
		src := image.Source{Reference: ref, Containerd: socket}
		if err := image.ExtractFile(t.Context(), src, image.SchedulerPath, "", to); err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(busybox)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(to); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: the file that came back differs, error %v", ref, err)
		}
		if err := image.ExtractFile(t.Context(), src, "/none", "", to); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a file that is not in the image: %v", err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
			t.Errorf("files left: %v, error %v", left, err)
		}
	}
	t.Run("image it does not have", func(t *testing.T) {
		dir := t.TempDir()
		err := image.ExtractFile(t.Context(), image.Source{Reference: "localhost/none:1", Containerd: socket},
			image.SchedulerPath, "", filepath.Join(dir, "f"))
		if err == nil || !strings.Contains(err.Error(), "read localhost/none:1 from containerd") {
			t.Errorf("error %v", err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			t.Errorf("files left: %v, error %v", left, err)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := image.LoadContainerd(ctx, b, "localhost/other:1", socket); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
}

func TestBusyboxImageRunsAsNonroot(t *testing.T) {
	needs(t, "busybox-static", busybox)
	listed := strings.Fields(run(t, "", busybox, "--list"))
	root := t.TempDir()
	for name, f := range filesOf(t, build(t, options()).Images[host]) {
		if applet, ok := strings.CutPrefix(name, "bin/"); ok && f.Link != "" && !slices.Contains(listed, applet) {
			t.Errorf("there is a link for %s, but busybox has no such applet", applet)
		}
		lay(t, filepath.Join(root, name), f)
	}
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c",
		`test "$(id -un)" = nonroot && echo ok >/tmp/proof && ! echo ok >/etc/proof && test -x /usr/local/bin/kube-scheduler`)
	cmd.Dir, cmd.Env = "/", []string{"PATH=/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func lay(t *testing.T, at string, f file) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(at), 0o755)
	switch {
	case err != nil:
	case f.Mode.IsDir():
		err = os.MkdirAll(at, 0o755)
	case f.Link != "":
		err = os.Symlink(f.Link, at)
	default:
		err = os.WriteFile(at, []byte(f.Content), 0o600)
	}
	if err == nil && f.Link == "" {
		err = errors.Join(os.Chown(at, f.UID, f.GID), os.Chmod(at, f.Mode))
	}
	if err != nil {
		t.Fatal(err)
	}
}
