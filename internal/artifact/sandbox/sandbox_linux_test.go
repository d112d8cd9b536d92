package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// probeFile is the environment variable with the path of the program that tries forbidden
// operations.
const probeFile = "SANDBOX_PROBE"

func TestMain(m *testing.M) {
	if Entering(os.Args) {
		os.Exit(Enter(os.Args))
	}
	os.Exit(runWithProbe(m))
}

// runWithProbe compiles the probe, unless this process was started by a test.
func runWithProbe(m *testing.M) int {
	if os.Getenv(probeFile) != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "sandbox-test-")
	if err == nil {
		defer os.RemoveAll(dir)
		cmd := exec.Command("go", "build", "-o", dir, "./testdata/probe")
		cmd.Env, cmd.Stderr = append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
		// Tests run as other users, too.
		err = errors.Join(cmd.Run(), os.Chmod(dir, 0o755), os.Setenv(probeFile, filepath.Join(dir, "probe")))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "compile probe:", err)
		return 1
	}
	return m.Run()
}

// private returns a directory that only this user can enter, as commands make it.
func private(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func runProbe(t *testing.T, args ...string) *Result {
	t.Helper()
	dir := private(t)
	result, err := Run(t.Context(), dir, Program{Path: os.Getenv(probeFile), Args: args,
		Files: map[string][]byte{"input": []byte("content\n")}, Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("files left: %v, %v", left, err)
	}
	return result
}

// Each case is a separate test process, started as that user.
func TestProgramReachesNothingOfTheMachine(t *testing.T) {
	switch os.Getenv("SANDBOX_CASE") {
	case "root":
		wantIsolation(t, true)
	case "root without CAP_SYS_ADMIN":
		wantIsolation(t, false)
	case "user":
		wantIsolation(t, true)
	case "user without user namespaces":
		wantUnavailable(t)
	default:
		if os.Geteuid() != 0 {
			wantIsolation(t, true) // only root can be someone else
			return
		}
		asUsers(t)
	}
}

// asUsers runs the test again as each kind of user.
func asUsers(t *testing.T) {
	t.Helper()
	for name, attributes := range map[string]*syscall.SysProcAttr{
		"root":                         {Credential: &syscall.Credential{Groups: []uint32{0, 12345}}},
		"root without CAP_SYS_ADMIN":   {},
		"user":                         {Credential: &syscall.Credential{Uid: 12345, Gid: 12345}},
		"user without user namespaces": inUserNamespace(),
	} {
		test := t.Name()
		t.Run(name, func(t *testing.T) { runAs(t, test, name, attributes) })
	}
}

// inUserNamespace are the attributes of a user that may change the limits of its user namespace.
func inUserNamespace() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 12345, HostID: 0, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 12345, HostID: 0, Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_SYS_RESOURCE},
	}
}

// runAs runs the test again in another process.
func runAs(t *testing.T, test, name string, attributes *syscall.SysProcAttr) {
	home := t.TempDir()
	for dir := home; dir != filepath.Clean(os.TempDir()) && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan error)
	go func() { // on a separate thread, whose capabilities the process inherits
		runtime.LockOSThread()
		if name == "root without CAP_SYS_ADMIN" {
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_SYS_ADMIN, 0, 0, 0); err != nil {
				ended <- err
				return
			}
		}
		cmd := exec.Command("/proc/self/exe", "-test.run=^"+test+"$", "-test.count=1", "-test.timeout=2m")
		cmd.Env = []string{"SANDBOX_CASE=" + name, probeFile + "=" + os.Getenv(probeFile), "TMPDIR=" + home, "SECRET=1"}
		cmd.SysProcAttr = attributes
		out, err := cmd.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, out)
		}
		ended <- err
	}()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

func wantIsolation(t *testing.T, separate bool) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	result := runProbe(t, "look", l.Addr().String())
	want := strings.Join([]string{
		"user 65534 65534 []", "environment []", "process 1", "dial false", "listen true <nil>",
		"write /new false false false", "write /input false false false", "write /program false false false",
		"root [input output program] <nil>", "setuid false", "new privileges forbidden true", "",
	}, "\n")
	got := string(result.Text)
	if !separate {
		want = strings.ReplaceAll(want, "dial false", "dial true")
		for _, line := range strings.Split(got, "\n") {
			if strings.HasPrefix(line, "process ") {
				got = strings.ReplaceAll(got, line, "process 1")
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what the program could do (-want +got):\n%s", diff)
	}
	if result.Status != 0 || result.Wrote || (result.Shared == "") != separate {
		t.Errorf("got %+v", result)
	}
}

func forbidUserNamespaces(t *testing.T) {
	t.Helper()
	if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func wantUnavailable(t *testing.T) {
	forbidUserNamespaces(t)
	_, err := Run(t.Context(), private(t),
		Program{Path: os.Getenv(probeFile), Args: []string{"look", "127.0.0.1:1"}, Timeout: time.Minute})
	if !errors.Is(err, ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}

func TestProgramIsLimited(t *testing.T) {
	for _, c := range []struct{ action, want string }{
		{"allocate", "out of memory"},
		{"fill", "file too large"},
	} {
		t.Run(c.action, func(t *testing.T) {
			if result := runProbe(t, c.action); !strings.Contains(string(result.Text), c.want) {
				t.Errorf("status %d, got %.300s", result.Status, result.Text)
			}
		})
	}
}

// Memory, files and open files are limited as docs/security.md says.
func TestProgramHasTheLimitsOfResources(t *testing.T) {
	limit := func(resource int, most uint64) string {
		return fmt.Sprintf("limit %d %d %d <nil>", resource, most, most)
	}
	want := []string{
		limit(unix.RLIMIT_CPU, 120), limit(unix.RLIMIT_FSIZE, 16<<20), limit(unix.RLIMIT_DATA, 1<<30),
		limit(unix.RLIMIT_CORE, 0), limit(unix.RLIMIT_NOFILE, 256), limit(unix.RLIMIT_AS, 6<<30),
	}
	if os.Geteuid() == 0 {
		want = append(want, limit(unix.RLIMIT_NPROC, 1024))
	}
	got := strings.Split(string(runProbe(t, "limits").Text), "\n")
	if diff := cmp.Diff(want, got[:min(len(want), len(got))]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The root of the program has no /proc: its namespaces and mounts are read from outside.
func TestProgramHasNamespacesAndAFileSystemOfItsOwn(t *testing.T) {
	if os.Geteuid() != 0 {
		return // only root can read the namespaces of another user's process
	}
	_, cmd, _, err := startProbe(t, private(t), nil, "forever")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
	}()
	proc := fmt.Sprintf("/proc/%d/", cmd.Process.Pid)
	for _, kind := range []string{"ipc", "mnt", "net", "pid", "uts"} {
		own, err := os.Readlink("/proc/self/ns/" + kind)
		its, itsErr := os.Readlink(proc + "ns/" + kind)
		if err != nil || itsErr != nil || own == its {
			t.Errorf("namespace %s: %s of the program, %s of the caller, %v", kind, its, own, errors.Join(err, itsErr))
		}
	}
	mounts, err := os.ReadFile(proc + "mounts")
	if err != nil {
		t.Fatal(err)
	}
	var options []string
	for _, line := range strings.Split(strings.TrimSpace(string(mounts)), "\n") {
		if fields := strings.Fields(line); fields[1] == "/" {
			options = strings.Split(fields[3], ",")
		}
	}
	for _, option := range []string{"ro", "nosuid", "nodev"} {
		if !slices.Contains(options, option) {
			t.Errorf("the root is not mounted %s:\n%s", option, mounts)
		}
	}
}

func TestProgramReadsItsFilesAndWritesItsOutput(t *testing.T) {
	result := runProbe(t, "write")
	if string(result.Text) != "<nil>\n" || result.Status != 7 || !result.Wrote || result.TimedOut {
		t.Errorf("got %+v", result)
	}
}

func TestProgramThatDoesNotEndIsKilled(t *testing.T) {
	for _, action := range []string{"forever", "print"} {
		result, err := Run(t.Context(), private(t),
			Program{Path: os.Getenv(probeFile), Args: []string{action}, Timeout: 500 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		if !result.TimedOut || result.Status != -1 || len(result.Text) > textLimit {
			t.Errorf("%s: got timed out %t, status %d, %d bytes", action, result.TimedOut, result.Status, len(result.Text))
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := Run(ctx, private(t), Program{Path: os.Getenv(probeFile), Args: []string{"forever"},
		Timeout: time.Minute}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestProgramThatCannotBeExecutedIsExplained(t *testing.T) {
	if os.Getenv("SANDBOX_CASE") == "noexec" {
		wantNoexecError(t)
		return
	}
	file := filepath.Join(t.TempDir(), "text")
	for _, c := range []struct {
		name string
		mode os.FileMode
		want string
	}{
		{"not a program", 0o755, "exec format error"},
		{"not executable", 0o644, "is not executable"},
	} {
		if err := errors.Join(os.WriteFile(file, []byte("text"), 0o600), os.Chmod(file, c.mode)); err != nil {
			t.Fatal(err)
		}
		_, err := Run(t.Context(), private(t), Program{Path: file, Timeout: time.Minute})
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, ErrUnavailable) {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
	if os.Geteuid() != 0 {
		return // only root can mount
	}
	// Mounts of another process disappear with it.
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestProgramThatCannotBeExecutedIsExplained$", "-test.count=1")
	cmd.Env = []string{"SANDBOX_CASE=noexec", probeFile + "=" + os.Getenv(probeFile), "TMPDIR=" + t.TempDir()}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func wantNoexecError(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount("none", dir, "tmpfs", unix.MS_NOEXEC, "")); err != nil {
		t.Fatal(err)
	}
	_, err := Run(t.Context(), dir, Program{Path: os.Getenv(probeFile), Args: []string{"write"}, Timeout: time.Minute})
	var hinted interface{ Hint() string }
	if err == nil || !strings.Contains(err.Error(), "mounted noexec") || !errors.As(err, &hinted) ||
		!strings.Contains(hinted.Hint(), "TMPDIR") {
		t.Errorf("got %v", err)
	}
	if err := unix.Unmount(dir, 0); err != nil {
		t.Error(err)
	}
}
