//go:build linux

package prometheus

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// readyTime is how long a Prometheus may take to be ready on a busy machine.
const readyTime = time.Minute

// Server is a real Prometheus, which can be stopped and started again.
type Server struct {
	// Address is host:port; it stays the same.
	Address string
	dir     string
	cmd     *exec.Cmd
	done    chan struct{}
}

// New configures a Prometheus that listens on a free port of ip and scrapes the nodes of the
// exporter at the interval every. instances are the labels that it gives to the nodes, by name.
func New(t *testing.T, ip string, every time.Duration, e *Exporter, instances map[string]string) *Server {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{dir: t.TempDir(), Address: listener.Addr().String()}
	listener.Close()
	var config strings.Builder
	fmt.Fprintf(&config, "global: {scrape_interval: %[1]s, scrape_timeout: %[1]s}\nscrape_configs:\n", every)
	for name, instance := range instances {
		fmt.Fprintf(&config,
			"- job_name: %s\n  metrics_path: /%s\n  static_configs: [{targets: [%q], labels: {instance: %q}}]\n",
			name, name, e.Listener.Addr().String(), instance)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "prometheus.yml"), []byte(config.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// Start starts it, with the data it had, and waits until it is ready.
func (s *Server) Start(ctx context.Context, t *testing.T) {
	t.Helper()
	out, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	s.cmd = exec.Command("prometheus", "--config.file="+filepath.Join(s.dir, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(s.dir, "data"), "--web.listen-address="+s.Address)
	s.cmd.Stdout, s.cmd.Stderr = out, out
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		t.Fatalf("start prometheus: %v (make deps installs it)", err)
	}
	done := make(chan struct{})
	s.done = done
	go func(cmd *exec.Cmd) {
		defer close(done)
		_ = cmd.Wait() // how it ended is in its log
	}(s.cmd)
	s.await(ctx, t)
}

// await returns when the server is ready.
func (s *Server) await(ctx context.Context, t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	for {
		err := s.ready(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			t.Fatalf("Prometheus is not ready: %v\n%s", err, text)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (s *Server) ready(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Address+"/-/ready", http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %s", response.Status)
	}
	return nil
}

// Stop kills it; it need not run.
func (s *Server) Stop() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill() // it may be gone
	<-s.done
	s.cmd = nil
}
