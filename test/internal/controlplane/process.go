//go:build linux

package controlplane

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/foresight/apiserver"
)

// stopTime is how long a process may take to end when it is asked to.
const stopTime = 30 * time.Second

// Process is a program that can be started again and again, with the same arguments and the same
// log. It ends with the test.
type Process struct {
	t       testing.TB
	program string
	args    []string
	log     string
	cmd     *exec.Cmd
	done    chan struct{}
}

// NewProcess prepares a process; Start starts it. When the test fails, the end of its output is
// logged.
func NewProcess(t testing.TB, program string, args ...string) *Process {
	t.Helper()
	p := &Process{t: t, program: program, args: args, log: filepath.Join(t.TempDir(), "log")}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			text := p.Log()
			t.Logf("%s wrote:\n%s", filepath.Base(program), text[max(0, len(text)-8<<10):])
		}
	})
	return p
}

// Start starts it.
func (p *Process) Start() {
	p.t.Helper()
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	defer log.Close()
	p.cmd = exec.Command(p.program, p.args...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	done := make(chan struct{})
	p.done = done
	go func(cmd *exec.Cmd) {
		defer close(done)
		_ = cmd.Wait() // how it ended is in its log
	}(p.cmd)
}

// Kill ends it as a crash would; it need not run.
func (p *Process) Kill() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill() // it may be gone
	<-p.done
	p.cmd = nil
}

// Stop ends it as a kubelet would.
func (p *Process) Stop() {
	p.t.Helper()
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may be gone
	select {
	case <-p.done:
		p.cmd = nil
	case <-time.After(stopTime):
		p.t.Fatalf("%s does not stop", filepath.Base(p.program))
	}
}

// Log returns the output of the process so far.
func (p *Process) Log() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// PID returns the process's number.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// FreeAddress returns an address of loopback that was free a moment ago.
func FreeAddress(t testing.TB) string {
	t.Helper()
	port, err := apiserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
