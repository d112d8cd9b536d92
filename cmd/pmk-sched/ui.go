package main

// Rules of the UI
//
//   - Standard output is for data only, as a table, JSON or YAML.
//   - Standard error is for everything else: logs (zap), a line for each step with its duration,
//     warnings, the error and its hints.
//   - A step is "✓ name (1.2s)" when it succeeded and "✗ name (1.2s)" when it failed. On a
//     terminal the running step is shown too, and how far it is. Elsewhere a step that takes long
//     has a line "… progress" every 30 seconds.
//   - Messages start in lower case and have no final period. An error starts with "error: ", and
//     the remedies after it with "hint: ".
//   - A question is asked only if standard input is a terminal.
//   - Output that cannot be written, because a pipe or the terminal was closed, does not stop an
//     operation or fail it.
//   - Control characters in data and messages are written escaped, except line ends and tabs.
//   - Keys, tokens and passwords are never written.

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"
	"go.uber.org/zap"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/terminal"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
)

// ui holds a command's input and output.
type ui struct {
	in  io.Reader
	out *output
	err *stepWriter
	// json makes steps log entries instead of lines.
	json bool

	// The rest is set when the global flags are read.
	log       *zap.Logger
	namespace string // empty unless it is given
	session   *session.Session
}

func newUI(in io.Reader, out, errw io.Writer) *ui {
	return &ui{in: in, out: newOutput(out), err: &stepWriter{w: errw, terminal: terminal.Is(errw)}, log: zap.NewNop()}
}

// step starts a step and returns the function that ends it. It is the OnStep of every package with
// long operations.
func (u *ui) step(name string) func(err error) {
	start := time.Now()
	u.err.progressDue(start, 0)
	if !u.json {
		u.err.running(name)
	}
	return func(err error) {
		took := time.Since(start)
		switch {
		case u.json && err != nil:
			u.log.Error("step failed", zap.String("step", name), zap.Duration("took", took), zap.Error(err))
		case u.json:
			u.log.Info("step done", zap.String("step", name), zap.Duration("took", took))
		case err != nil:
			u.err.finished("✗", name, took)
		default:
			u.err.finished("✓", name, took)
		}
	}
}

// progress shows how far the running step is.
func (u *ui) progress(text string) {
	switch {
	case u.err.terminal && !u.json:
		u.err.running(text)
	case !u.err.progressDue(time.Now(), progressInterval):
	case u.json:
		u.log.Info("step running", zap.String("progress", text))
	default:
		u.say("… %s", text)
	}
}

func (u *ui) say(format string, args ...any) {
	_, _ = fmt.Fprintf(u.err, format+"\n", args...)
}

// warn writes warnings, one a line.
func (u *ui) warn(warnings ...string) {
	for _, w := range warnings {
		if u.json {
			u.log.Warn(w)
		} else {
			u.say("warning: %s", w)
		}
	}
}

func (u *ui) fail(err error) {
	text := err.Error()
	if errors.Is(err, context.Canceled) {
		text = "interrupted: " + strings.TrimSuffix(text, ": "+context.Canceled.Error())
	}
	u.say("error: %s", strings.TrimSpace(text))
	for _, hint := range problem.Hints(err) {
		u.say("hint: %s", hint)
	}
}

// data writes v to standard output in a format; table is v as text, see [printer].
func (u *ui) data(format string, v any, table string) error {
	return writeData(u.out, format, v, table)
}

func writeData(out io.Writer, format string, v any, table string) error {
	switch format {
	case "json":
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(v)
	case "yaml":
		text, err := escapedYAML(v)
		if err != nil {
			return fmt.Errorf("write yaml: %w", err)
		}
		_, err = out.Write(text)
		return err
	default:
		_, err := io.WriteString(out, aligned(table))
		return err
	}
}

// confirm asks before something is removed or replaced. --yes answers; with neither a terminal nor
// yes it returns an error.
func (u *ui) confirm(ctx context.Context, yes bool, question string) error {
	return u.ask(ctx, "yes", yes, question)
}

// confirmRecorded returns the function that prints what a cluster decides, and asks before it is
// done. The flag answers, if it is set.
func (u *ui) confirmRecorded(flag string, yes bool) lifecycle.Confirm {
	return func(ctx context.Context, found *pack.Unconfirmed) error {
		if found.Image == "" {
			u.say("%s has code that this machine has not built:", found.Origin)
		} else {
			u.say("%s names the image to build:\n  image %s", found.Origin, oneLine(found.Image))
		}
		for _, line := range found.Content {
			u.say("  %s", oneLine(line))
		}
		err := u.ask(ctx, flag, yes, found.Action())
		if len(problem.Hints(err)) == 0 {
			return err // the user has answered
		}
		return problem.WithHint(err, "or "+found.Alternative())
	}
}

// confirmPermissions makes the session ask before a revision gives a scheduler permissions that it
// does not have. The command's --yes answers.
func (u *ui) confirmPermissions(c *cli.Context) {
	u.session.Confirm = func(ctx context.Context, question string) error {
		return u.confirm(ctx, c.Bool("yes"), oneLine(question))
	}
}

// ask asks a question. The flag answers, if it is set.
func (u *ui) ask(ctx context.Context, flag string, yes bool, question string) error {
	if yes {
		return nil
	}
	if !terminal.Is(u.in) {
		return problem.Invalidf("confirm with --"+flag+" if standard input is not a terminal",
			"refusing to %s without confirmation", question)
	}
	_, _ = fmt.Fprintf(u.err, "%s? [y/N] ", question)
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(u.in).ReadString('\n')
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case a := <-answer:
		if a == "y" || a == "yes" {
			return nil
		}
		return problem.Invalidf("", "canceled; nothing was changed")
	}
}

// stepWriter is standard error. On a terminal it keeps the running step's line below the log. Its
// callers ignore errors, which cannot be reported elsewhere.
type stepWriter struct {
	mu       sync.Mutex
	w        io.Writer
	escaper  escaper
	terminal bool
	shown    bool
	// reported is the time when a step started or last printed its progress.
	reported time.Time
}

// progressInterval is the time between two lines about a step's progress, except on a terminal.
const progressInterval = 30 * time.Second

// progressDue reports whether nothing was reported for an interval, and if so, sets the last
// report's time to now.
func (s *stepWriter) progressDue(now time.Time, interval time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.reported) < interval {
		return false
	}
	s.reported = now
	return true
}

const clearLine = "\r\033[K"

// Write writes anything but a step, with escaped control characters.
func (s *stepWriter) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	if _, err := s.w.Write(s.escaper.escape(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (s *stepWriter) running(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.terminal {
		return
	}
	_, _ = io.WriteString(s.w, clearLine+cut("… "+escape(name), terminal.Width(s.w)))
	s.shown = true
}

// cut returns the part of a line that fits a terminal: clearLine does not clear a second line. No
// columns mean any number.
func cut(line string, columns int) string {
	if all := []rune(line); columns > 0 && len(all) > columns {
		return string(all[:columns])
	}
	return line
}

func (s *stepWriter) finished(mark, name string, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	_, _ = fmt.Fprintf(s.w, "%s %s (%.1fs)\n", mark, escape(name), took.Seconds())
}

func (s *stepWriter) clear() {
	if s.shown {
		_, _ = io.WriteString(s.w, clearLine)
		s.shown = false
	}
}

// Sync implements zapcore.WriteSyncer; standard error is not buffered.
func (s *stepWriter) Sync() error { return nil }
