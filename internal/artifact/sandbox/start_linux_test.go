package sandbox

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// ownAddress is where the probe listens in its network.
const ownAddress = "127.77.0.1:8080"

// listen answers each connection to an address of this machine with a text.
func listen(t *testing.T, text string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			connection, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(connection, text)
			_ = connection.Close()
		}
	}()
	return l.Addr().String()
}

// startProbe starts the probe as a service, whose output goes to a file.
func startProbe(t *testing.T, dir string, reach []string, args ...string) (*Service, *exec.Cmd, string, error) {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	var started *exec.Cmd
	p := Program{Path: os.Getenv(probeFile), Args: args, Files: map[string][]byte{"input": []byte("content\n")}}
	s, err := Start(t.Context(), dir, p, reach, func(cmd *exec.Cmd) error {
		started, cmd.Stdout, cmd.Stderr = cmd, out, out
		return cmd.Start()
	})
	return s, started, out.Name(), err
}

// Each case is a separate test process, started as that user.
func TestServiceReachesOnlyItsAddresses(t *testing.T) {
	switch name := os.Getenv("SANDBOX_CASE"); {
	case name == "root", name == "user", name == "" && os.Geteuid() != 0:
		wantService(t)
	case name == "":
		asUsers(t)
	default:
		if name == "user without user namespaces" {
			forbidUserNamespaces(t)
		}
		dir := private(t)
		s, cmd, _, err := startProbe(t, dir, nil, "forever")
		if s != nil || !errors.Is(err, ErrUnavailable) {
			t.Errorf("got %v, %v", s, err)
		}
		if cmd.Process != nil {
			_ = cmd.Wait()
		}
		wantEmpty(t, dir)
	}
}

func wantService(t *testing.T) {
	reach, other, dir := listen(t, "API server"), listen(t, "secret"), private(t)
	s, cmd, out, err := startProbe(t, dir, []string{reach}, "serve", reach, other, ownAddress)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if got := ask(t, s); got != "metrics" {
			t.Errorf("the service answers %q", got)
		}
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"allocated 2147483648", "user 65534 65534 []", "environment []", "process 1", "dial false", "listen true <nil>",
		"write /new false false false", "write /input false false false", "write /program false false false",
		"root [input output program] <nil>", "setuid false", "new privileges forbidden true",
		"outside false", `reach "API server"`, "write true", "ready", "",
	}, "\n")
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("what the service could do (-want +got):\n%s", diff)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // killed
	if output, err := s.Output(); err != nil || string(output) != "result" {
		t.Errorf("output %q, %v", output, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	wantEmpty(t, dir)
}

// ask returns what the service answers, as soon as it listens.
func ask(t *testing.T, s *Service) string {
	t.Helper()
	for {
		connection, err := s.Dial(t.Context(), ownAddress)
		if err == nil {
			text, err := io.ReadAll(connection)
			if err = errors.Join(err, connection.Close()); err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		if !errors.Is(err, unix.ECONNREFUSED) {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
}

func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("files left: %v, %v", left, err)
	}
}

func TestServiceThatClosesAllConnectionsCannotBeAsked(t *testing.T) {
	s, cmd, _, err := startProbe(t, private(t), nil, "serve", "127.0.0.1:1", "127.0.0.1:1", ownAddress)
	if err != nil {
		t.Fatal(err)
	}
	for range dialSockets {
		ask(t, s)
	}
	if _, err := s.Dial(t.Context(), ownAddress); !errors.Is(err, errNoSockets) {
		t.Errorf("got %v", err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // killed
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// The test starts itself, and kills the process that has started the service.
func TestServiceEndsWithItsParent(t *testing.T) {
	if os.Getenv("SANDBOX_CASE") != "" {
		_, cmd, _, err := startProbe(t, private(t), nil, "forever")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("started %d\n", cmd.Process.Pid)
		select {}
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestServiceEndsWithItsParent$", "-test.count=1")
	cmd.Env = []string{"SANDBOX_CASE=parent", probeFile + "=" + os.Getenv(probeFile), "TMPDIR=" + t.TempDir()}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscanf(out, "started %d\n", &pid); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // killed
	for process := "/proc/" + strconv.Itoa(pid); ; time.Sleep(time.Millisecond) {
		// Another parent may not have waited for it.
		status, err := os.ReadFile(process + "/status")
		if err != nil || strings.Contains(string(status), "\nState:\tZ") {
			return
		}
	}
}
