//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/clock"
)

func (l *Lab) pidFile(name string) string { return filepath.Join(l.dir, "pid", name) }
func (l *Lab) logFile(name string) string { return filepath.Join(l.LogDir(), name+".log") }

// daemonEnv is the whole environment of the node's processes. The user's proxy settings, for
// example, must not reach them.
func daemonEnv(path string) []string {
	return []string{"PATH=" + path, "HOME=/root", "LANG=C"}
}

// start runs argv detached from this process: in its own session, with a log file for its output
// and its PID in a file.
func (l *Lab) start(name string, argv []string, path string) error {
	log, err := os.OpenFile(l.logFile(name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	defer log.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = "/"
	cmd.Env = daemonEnv(path)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	// The result is not needed: Wait only prevents a zombie process.
	go func() { _ = cmd.Wait() }()
	if name == holder {
		return nil // It writes its id when its namespaces are made.
	}
	if err := os.WriteFile(l.pidFile(name), []byte(strconv.Itoa(cmd.Process.Pid)+"\n"), 0o644); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	return nil
}

// holder is the process that keeps the namespaces alive.
const holder = "holder"

// startDaemon starts a process of the node.
func (l *Lab) startDaemon(d daemon, path string) error {
	return l.start(d.name, append([]string{filepath.Join(l.dir, "enter")}, d.argv...), path)
}

// pid returns the process with the name, 0 if it is not running. A PID that another process has
// reused is not in the lab's cgroup.
func (l *Lab) pid(name string, running []int) int {
	pid := l.written(name)
	if !slices.Contains(running, pid) {
		return 0
	}
	return pid
}

// started reports whether a process with the recorded PID exists: the one that was just started,
// or, much later, any.
func (l *Lab) started(name string) bool {
	pid := l.written(name)
	return pid > 0 && syscall.Kill(pid, 0) == nil
}

// written returns the PID in the file, 0 if there is none.
func (l *Lab) written(name string) int {
	data, err := os.ReadFile(l.pidFile(name))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return 0
	}
	return pid
}

// stop stops the process with the name and waits until it has exited.
func (l *Lab) stop(ctx context.Context, name string, g group) error {
	for killed, begin := syscall.SIGTERM, time.Now(); ; {
		running, err := g.processes()
		if err != nil {
			return fmt.Errorf("stop %s: %w", name, err)
		}
		pid := l.pid(name, running)
		if pid == 0 {
			return nil
		}
		if time.Since(begin) > 10*time.Second {
			killed = syscall.SIGKILL
		}
		if err := syscall.Kill(pid, killed); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stop %s: process %d: %w", name, pid, err)
		}
		if err := clock.Sleep(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("stop %s: process %d: %w", name, pid, err)
		}
	}
}

// logTail returns the last lines of a log file.
func logTail(path string, lines int) string {
	f, err := os.Open(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return ""
		}
		return err.Error()
	}
	defer f.Close()
	const most = 16 << 10
	if info, err := f.Stat(); err == nil && info.Size() > most {
		_, _ = f.Seek(-most, 2)
	}
	buf := make([]byte, most)
	n, _ := f.Read(buf)
	all := strings.Split(strings.TrimRight(string(buf[:n]), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
