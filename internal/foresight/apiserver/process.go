package apiserver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

const (
	tailBytes = 4096
	stopTime  = 20 * time.Second
)

// Process is a program that runs until it is stopped, or, on Linux, until this process is gone,
// however that ends.
type Process struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{}
}

// StartProcess starts a program, whose output is appended to a file. Its environment is empty, so
// that neither proxies nor settings for the user's own cluster reach it.
func StartProcess(log, program string, args ...string) (*Process, error) {
	return startProcess(log, []string{}, program, args...)
}

// startProcess starts a program with an environment, which must not be nil: nil means this
// process's environment.
func startProcess(log string, environment []string, program string, args ...string) (*Process, error) {
	cmd := exec.Command(program, args...)
	cmd.Env, cmd.SysProcAttr = environment, endWithParent()
	return StartCommand(log, cmd)
}

// StartCommand starts a command, whose output is appended to a file. Its attributes are the
// caller's.
func StartCommand(log string, cmd *exec.Cmd) (*Process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", filepath.Base(cmd.Path), err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", filepath.Base(cmd.Path), err)
	}
	p := &Process{cmd: cmd, log: log, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // how it ended is in its log
	}()
	return p, nil
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// OpenLog opens the process's log.
func (p *Process) OpenLog() (*os.File, error) {
	log, err := os.Open(p.log)
	if err != nil {
		return nil, fmt.Errorf("read the log of %s: %w", filepath.Base(p.cmd.Path), err)
	}
	return log, nil
}

// Stop ends the process and returns when it is gone. A process that was never started is stopped.
func (p *Process) Stop() error {
	if p == nil {
		return nil
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may be gone
	select {
	case <-p.done:
		return nil
	case <-time.After(stopTime):
	}
	return p.Kill()
}

// Kill ends the process at once and returns when it is gone.
func (p *Process) Kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", filepath.Base(p.cmd.Path), err)
	}
	<-p.done
	return nil
}

// LimitLog empties the process's log if it has more than most bytes. The process appends to it.
func (p *Process) LimitLog(most int64) error {
	info, err := os.Stat(p.log)
	if err != nil || info.Size() <= most {
		return err
	}
	return os.Truncate(p.log, 0)
}

// Tail returns the process name and the end of its log.
func (p *Process) Tail() string {
	if p == nil {
		return ""
	}
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return filepath.Base(p.cmd.Path) + ": " + string(text[max(0, len(text)-tailBytes):])
}
