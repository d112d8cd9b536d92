package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/pmk-sched/pmk-sched/internal/base/steps"
)

// tailLines is the number of output lines in an Error.
const tailLines = 30

// killedGrace is the time to wait for a killed command's pipes.
const killedGrace = 5 * time.Second

// command is a program to run, with its whole environment.
type command struct {
	path string
	args []string
	dir  string
	env  []string
	// drop reports whether a standard error line is left out of the outcome. If it is nil, no line is
	// left out.
	drop func(line string) bool
}

// outcome is a command's output: its standard output, and the end of its standard error.
type outcome struct {
	stdout []byte
	tail   string
}

type runner struct {
	log    *zap.Logger
	onStep steps.OnStep
}

func (r *runner) step(name string, do func() error) error { return r.onStep.Do(name, do) }

// run runs a command in its own process group. When ctx is done, it kills the whole group,
// compilers included, and returns the error of ctx.
func (r *runner) run(ctx context.Context, c command) (outcome, error) {
	if err := ctx.Err(); err != nil {
		return outcome{}, err
	}
	cmd := exec.CommandContext(ctx, c.path, c.args...)
	cmd.Dir = c.dir
	cmd.Env = append([]string{}, c.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killedGrace
	var stdout bytes.Buffer
	stderr := &tailWriter{log: r.log, limit: tailLines, drop: c.drop}
	cmd.Stdout, cmd.Stderr = &stdout, stderr

	r.log.Debug("run", zap.String("command", c.path), zap.String("args", redact(strings.Join(c.args, " "))),
		zap.String("dir", c.dir))
	err := cmd.Run()
	if ctx.Err() != nil {
		return outcome{}, ctx.Err()
	}
	return outcome{stdout: stdout.Bytes(), tail: stderr.String()}, err
}

// lookPath finds a program in an environment's PATH, not in this process's PATH.
func lookPath(env []string, name string) (string, error) {
	for _, dir := range filepath.SplitList(lookup(env, "PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("find %s: %w", name, exec.ErrNotFound)
}

// lookup returns the value of a variable in an environment. If it is set several times, the last
// value counts.
func lookup(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if value, found := strings.CutPrefix(env[i], name+"="); found {
			return value
		}
	}
	return ""
}

// exited reports whether a command ran and failed, and not whether it could not be started.
func exited(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit)
}

// tailWriter logs lines and keeps the last of them.
type tailWriter struct {
	log     *zap.Logger
	limit   int
	drop    func(line string) bool
	lines   []string
	partial []byte
}

func (t *tailWriter) Write(p []byte) (int, error) {
	t.partial = append(t.partial, p...)
	for {
		end := bytes.IndexByte(t.partial, '\n')
		if end < 0 {
			return len(p), nil
		}
		t.add(string(t.partial[:end]))
		t.partial = t.partial[end+1:]
	}
}

func (t *tailWriter) add(line string) {
	line = redact(line)
	t.log.Debug(line)
	// Downloads are not a failure's cause.
	if strings.HasPrefix(line, "go: downloading ") || t.drop != nil && t.drop(line) {
		return
	}
	t.lines = append(t.lines, line)
	if len(t.lines) > t.limit {
		t.lines = t.lines[1:]
	}
}

func (t *tailWriter) String() string {
	if len(t.partial) > 0 {
		t.add(string(t.partial))
		t.partial = nil
	}
	return strings.Join(t.lines, "\n")
}

var userInURL = regexp.MustCompile(`([a-z][a-z0-9+.-]*://)[^/@\s"']+@`)

// redact removes user names and passwords from the URLs in a text.
func redact(text string) string { return userInURL.ReplaceAllString(text, "$1") }
