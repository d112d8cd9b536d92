package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// failure is the reason for not executing a program.
type failure struct{ kind, text string }

// Run runs a program until it ends, ctx ends, or its time is over. dir is an existing directory for
// its root, removed afterwards, which only this user can enter. A program that fails or is killed
// is a result; the error is the reason for not running it: [ErrUnavailable] if it cannot be
// isolated.
func Run(ctx context.Context, dir string, p Program) (result *Result, err error) {
	root, err := p.prepare(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	result, failed, err := p.start(ctx, root, modeIsolated)
	if failed != nil && failed.kind == failedToIsolate && os.Geteuid() == 0 {
		reason := failed.text
		if result, failed, err = p.start(ctx, root, modeShared); result != nil {
			result.Shared = reason
		}
	}
	if failed != nil {
		return nil, p.failedToStart(failed)
	}
	return result, err
}

// failedToStart returns the error for a failure.
func (p Program) failedToStart(f *failure) error {
	if f.kind == failedToIsolate {
		return problem.Errorf("run pmk-sched as root, or allow user namespaces", "%w: %s", ErrUnavailable, f.text)
	}
	return problem.Errorf("is the program static and for this machine's architecture?", "run %s: %s", p.Path, f.text)
}

// prepare returns a root directory in dir with the program and its files.
func (p Program) prepare(dir string) (root string, err error) {
	if Entering(os.Args) {
		// It would start itself again and again.
		return "", errors.New("run a program of an image: main of this program does not call sandbox.Enter")
	}
	if root, err = os.MkdirTemp(dir, "root-"); err != nil {
		return "", fmt.Errorf("create root directory for %s: %w", p.Path, err)
	}
	if err = p.fill(root); err != nil {
		err = fmt.Errorf("prepare root directory for %s: %w", p.Path, err)
	} else {
		err = checkExecutable(root)
	}
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(root))
	}
	return root, nil
}

// fill writes the program and its files. Only the owner can change them.
func (p Program) fill(root string) error {
	errs := []error{os.Chmod(root, 0o755), copyProgram(p.Path, filepath.Join(root, programName))}
	for name, content := range p.Files {
		errs = append(errs, writeFile(filepath.Join(root, name), content))
	}
	output := filepath.Join(root, outputName)
	errs = append(errs, writeFile(output, nil))
	if os.Geteuid() == 0 {
		errs = append(errs, os.Chown(output, unprivilegedID, unprivilegedID))
	}
	return errors.Join(errs...)
}

func writeFile(path string, content []byte) error {
	// Chmod, since the umask may take the permission to read away.
	return errors.Join(os.WriteFile(path, content, 0o644), os.Chmod(path, 0o644))
}

// copyProgram makes from executable by everyone as to. Root needs no copy if it is on the same file
// system already: the program's user cannot change it.
func copyProgram(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if info.Mode()&0o111 == 0 {
		return fmt.Errorf("%s is not executable", from)
	}
	if os.Geteuid() == 0 && info.Mode().Perm() == 0o755 && os.Link(from, to) == nil {
		return nil
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Chmod(0o755), out.Close())
}

// checkExecutable returns an error if the file system of root does not allow programs: executing
// one would only be "permission denied".
func checkExecutable(root string) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(root, &fs); err != nil {
		return fmt.Errorf("read the mount options of %s: %w", root, err)
	}
	if fs.Flags&unix.ST_NOEXEC != 0 {
		return problem.Errorf("set TMPDIR to a directory on a file system that allows it",
			"run a program in %s: its file system is mounted noexec", root)
	}
	return nil
}

// start runs the program once. The failure is the reason for not executing it.
func (p Program) start(ctx context.Context, root, mode string) (*Result, *failure, error) {
	// PR_SET_PDEATHSIG is about the thread that started the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	report, child, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("run %s: %w", p.Path, err)
	}
	defer report.Close()
	limited, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	var text tail
	cmd := p.command(func(name string, args ...string) *exec.Cmd {
		return exec.CommandContext(limited, name, args...)
	}, entry{Root: root, Mode: mode})
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = &text, &text, []*os.File{child}
	// The whole group, for the programs that it may have started.
	cmd.Cancel, cmd.WaitDelay = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }, time.Second
	err = cmd.Start()
	_ = child.Close()
	if err != nil && ctx.Err() == nil {
		return nil, &failure{failedToIsolate, err.Error()}, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("run %s: %w", p.Path, context.Cause(ctx))
	}
	reported, err := io.ReadAll(report)
	waitErr := cmd.Wait()
	if ctx.Err() != nil {
		return nil, nil, fmt.Errorf("run %s: %w", p.Path, context.Cause(ctx))
	}
	if kind, reason, failed := strings.Cut(string(reported), "\n"); failed {
		return nil, &failure{kind, reason}, nil
	}
	var exit *exec.ExitError
	if err != nil ||
		waitErr != nil && !errors.As(waitErr, &exit) && !errors.Is(waitErr, exec.ErrWaitDelay) && limited.Err() == nil {
		return nil, nil, fmt.Errorf("run %s: %w", p.Path, errors.Join(err, waitErr))
	}
	written, err := os.Stat(filepath.Join(root, outputName))
	if err != nil {
		return nil, nil, fmt.Errorf("run %s: %w", p.Path, err)
	}
	return &Result{Status: cmd.ProcessState.ExitCode(), Text: text.end(), Wrote: written.Size() > 0,
		TimedOut: limited.Err() != nil}, nil, nil
}

// command returns the command that enters the sandbox and executes the program.
func (p Program) command(with func(name string, args ...string) *exec.Cmd, e entry) *exec.Cmd {
	cmd := with("/proc/self/exe")
	cmd.Args = append([]string{"pmk-sched", enterArgument, e.String()}, p.Args...)
	cmd.Env, cmd.Dir, cmd.SysProcAttr = []string{}, e.Root, attributes(e.Mode)
	return cmd
}

// attributes returns the attributes of the process that enters the sandbox. For a user other than
// root, the process uses the unprivileged ID in a user namespace, with the capabilities to set up
// the other namespaces.
func attributes(mode string) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if mode != modeIsolated {
		return a
	}
	a.Cloneflags = unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	if os.Geteuid() != 0 {
		a.Cloneflags |= unix.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: unprivilegedID, HostID: os.Geteuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: unprivilegedID, HostID: os.Getegid(), Size: 1}}
		a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SYS_CHROOT}
	}
	return a
}
