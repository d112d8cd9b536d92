//go:build linux

package apiserver

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

const tailBytes = 4096

// process is a program that runs until it is stopped, or until the test process is gone, however that ends.
type process struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{}
}

func startProcess(log, program string, args ...string) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", filepath.Base(program), err)
	}
	defer out.Close()
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", filepath.Base(program), err)
	}
	p := &process{cmd: cmd, log: log, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // how it ended is in its log
	}()
	return p, nil
}

// stop ends the process and returns when it is gone. A process that was never started is stopped.
func (p *process) stop() error {
	if p == nil {
		return nil
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may be gone
	select {
	case <-p.done:
		return nil
	case <-time.After(stopTime):
	}
	if err := p.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("stop %s: %w", filepath.Base(p.cmd.Path), err)
	}
	<-p.done
	return nil
}

// tail returns the end of what the process wrote.
func (p *process) tail() string {
	if p == nil {
		return ""
	}
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	if len(text) > tailBytes {
		text = text[len(text)-tailBytes:]
	}
	return filepath.Base(p.cmd.Path) + ": " + string(text)
}
