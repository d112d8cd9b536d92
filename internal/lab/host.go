//go:build linux

package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
)

// host is a set of namespaces with processes: a lab's node or network.
type host struct {
	// dir holds the logs, PID files and scripts of the host.
	dir string
	// cgroup is the name of the host's cgroup in every hierarchy.
	cgroup string
}

// holder is the process that keeps the namespaces of a host alive.
const holder = "holder"

func (h host) group() (group, error)      { return newGroup(h.cgroup) }
func (h host) pidFile(name string) string { return filepath.Join(h.dir, "pid", name) }
func (h host) logDir() string             { return filepath.Join(h.dir, "log") }
func (h host) logFile(name string) string { return filepath.Join(h.logDir(), name+".log") }

func (h host) create() error {
	for _, dir := range []string{h.logDir(), filepath.Dir(h.pidFile(holder))} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("create the lab's directory: %w", err)
		}
	}
	return nil
}

// boot creates the cgroups of the host and starts its namespaces with the scripts in its directory.
// peer is a process in the network namespace that gets the other end of the host's link.
func (h host) boot(ctx context.Context, peer int, path string) error {
	g, err := h.group()
	if err != nil {
		return err
	}
	if err := g.createHost(); err != nil {
		return err
	}
	if err := h.start(holder, []string{"/bin/sh", filepath.Join(h.dir, "hold"), strconv.Itoa(peer)}, path); err != nil {
		return err
	}
	if err := h.waitFor(ctx, "namespaces", holder, func(context.Context) error {
		_, err := os.Stat(h.pidFile(holder))
		return err
	}); err != nil {
		return err
	}
	g.delegate()
	return nil
}

// daemonEnv is the whole environment of the node's processes. The user's proxy settings, for
// example, must not reach them.
func daemonEnv(path string) []string {
	return []string{"PATH=" + path, "HOME=/root", "LANG=C"}
}

// start runs argv detached from this process: in its own session, with a log file for its output
// and its PID in a file.
func (h host) start(name string, argv []string, path string) error {
	log, err := h.openLog(name)
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
	if err := os.WriteFile(h.pidFile(name), []byte(strconv.Itoa(cmd.Process.Pid)+"\n"), 0o644); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	return nil
}

func (h host) openLog(name string) (*os.File, error) {
	return os.OpenFile(h.logFile(name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
}

func (h host) enter() string { return filepath.Join(h.dir, "enter") }

func (h host) startDaemon(d daemon, path string) error {
	return h.start(d.name, append([]string{h.enter()}, d.argv...), path)
}

// run runs a program in the host's namespaces. If the program fails, the error contains its output.
func (h host) run(ctx context.Context, path string, argv ...string) error {
	var out bytes.Buffer
	return h.runTo(ctx, &out, path, argv, func() string { return lastLines(out.String(), 5) })
}

// runLogged is run for a program with much output, which goes to a log file with the program's
// name.
func (h host) runLogged(ctx context.Context, path string, argv ...string) error {
	name := filepath.Base(argv[0])
	log, err := h.openLog(name)
	if err != nil {
		return fmt.Errorf("run %s: %w", name, err)
	}
	defer log.Close()
	return h.runTo(ctx, log, path, argv, func() string { return logTail(h.logFile(name), tailLines) })
}

func (h host) runTo(ctx context.Context, out io.Writer, path string, argv []string, tail func() string) error {
	cmd := exec.CommandContext(ctx, h.enter(), argv...)
	cmd.Dir = "/"
	cmd.Env = daemonEnv(path)
	cmd.Stdout, cmd.Stderr = out, out
	err := cmd.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(argv[0]), err, tail())
	}
	return nil
}

func (h host) processes() ([]int, error) {
	g, err := h.group()
	if err != nil {
		return nil, err
	}
	return g.processes()
}

func (h host) running() (bool, error) {
	pids, err := h.processes()
	return h.pid(holder, pids) != 0, err
}

// pid returns the process with the name, 0 if it is not running. A PID that another process has
// reused is not in the host's cgroup.
func (h host) pid(name string, running []int) int {
	pid := h.readPID(name)
	if !slices.Contains(running, pid) {
		return 0
	}
	return pid
}

// hasStarted reports whether a process with the recorded PID exists. Long after the start another
// process may have reused the PID.
func (h host) hasStarted(name string) bool {
	pid := h.readPID(name)
	return pid > 0 && syscall.Kill(pid, 0) == nil
}

// readPID returns the PID in the file, 0 if there is none.
func (h host) readPID(name string) int {
	data, err := os.ReadFile(h.pidFile(name))
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
func (h host) stop(ctx context.Context, name string) error {
	for begin := time.Now(); ; {
		running, err := h.processes()
		if err != nil {
			return fmt.Errorf("stop %s: %w", name, err)
		}
		pid := h.pid(name, running)
		if pid == 0 {
			return nil
		}
		signal, to := syscall.SIGTERM, pid
		if time.Since(begin) > 10*time.Second {
			signal, to = syscall.SIGKILL, -pid // with the processes of its group, such as a script's
		}
		if err := syscall.Kill(to, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stop %s: process %d: %w", name, pid, err)
		}
		if err := clock.Sleep(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("stop %s: process %d: %w", name, pid, err)
		}
	}
}

// patience is the maximum duration of each wait. A machine that is compiling at the same time is
// slow.
const patience = 8 * time.Minute

// waitFor waits until check returns no error, or the named daemon has exited.
func (h host) waitFor(ctx context.Context, what, daemon string, check func(context.Context) error) error {
	for begin := time.Now(); ; {
		limited, cancel := context.WithTimeout(ctx, 20*time.Second)
		err := check(limited)
		cancel()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("wait for %s: %w", what, ctx.Err())
		}
		if time.Since(begin) > patience {
			return fmt.Errorf("wait for %s: timed out after %s: %w", what, patience, err)
		}
		if gone, lookErr := h.hasEnded(daemon, begin); gone || lookErr != nil {
			return fmt.Errorf("wait for %s: %w", what, errors.Join(lookErr, &exitedError{daemon}))
		}
		if err := clock.Sleep(ctx, 100*time.Millisecond); err != nil {
			return fmt.Errorf("wait for %s: %w", what, err)
		}
	}
}

// exitedError is returned by a wait when the daemon that it waits for has exited.
type exitedError struct{ daemon string }

func (e *exitedError) Error() string { return e.daemon + " exited" }

// hasEnded reports whether a started daemon has exited. A daemon joins the host's cgroup a moment
// after its start, or much later on a busy machine: until then it is known only by its PID.
func (h host) hasEnded(daemon string, since time.Time) (bool, error) {
	if time.Since(since) < 2*time.Second {
		return false, nil
	}
	running, err := h.processes()
	if err != nil {
		return false, err
	}
	if daemon == holder && h.pid(holder, running) == 0 {
		return len(running) == 0, nil // Its id is written when all is made.
	}
	return h.pid(daemon, running) == 0 && !h.hasStarted(daemon), nil
}

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
