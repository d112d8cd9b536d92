package main

// Rules of the UI
//
//   - Standard output carries data and nothing else: what was asked for, as a
//     table, JSON or YAML. It can be piped.
//   - Standard error carries everything that is talk: logs (zap), a line for
//     each step with its time, warnings, the error and its hints.
//   - A step is "✓ name (1.2s)" when it is done and "✗ name (1.2s)" when it
//     failed. On a terminal the running step is shown too; elsewhere only the
//     finished line is written, so that scripts can follow.
//   - Messages begin in lower case and have no final period. An error begins
//     with "error: ", says what was tried, on what, and what was seen; "hint: "
//     lines below it say what to do.
//   - Nothing asks a question unless standard input is a terminal.
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
	"text/tabwriter"
	"time"

	"go.uber.org/zap"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/terminal"
)

// ui is where a command reads and writes.
type ui struct {
	in  io.Reader
	out io.Writer
	err *stepWriter
	// log is set when the global flags are read.
	log *zap.Logger
	// json makes steps log entries instead of lines.
	json bool
}

func newUI(in io.Reader, out, errw io.Writer) *ui {
	return &ui{in: in, out: out, err: &stepWriter{w: errw, terminal: terminal.Is(errw)}, log: zap.NewNop()}
}

// step announces a step and returns what ends it. It fits the OnStep of every
// package that has long operations.
func (u *ui) step(name string) func(err error) {
	start := time.Now()
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

// say writes a line of talk.
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

// fail writes an error and its hints. What was interrupted is said to be.
func (u *ui) fail(err error) {
	text := err.Error()
	if errors.Is(err, context.Canceled) {
		text = "interrupted: " + strings.TrimSuffix(text, ": "+context.Canceled.Error())
	}
	u.say("error: %s", strings.TrimSpace(text))
	for _, hint := range hints(err) {
		u.say("hint: %s", hint)
	}
}

// data writes v in the format asked for; table writes the form for people.
func (u *ui) data(format string, v any, table func(w io.Writer) error) error {
	switch format {
	case "json":
		enc := json.NewEncoder(u.out)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(v)
	case "yaml":
		text, err := yaml.Marshal(v)
		if err != nil {
			return fmt.Errorf("write yaml: %w", err)
		}
		_, err = u.out.Write(text)
		return err
	default:
		w := tabwriter.NewWriter(u.out, 0, 0, 2, ' ', 0)
		if err := table(w); err != nil {
			return err
		}
		return w.Flush()
	}
}

// confirm asks before something is taken away. yes answers for the person; with
// neither a terminal nor yes it refuses.
func (u *ui) confirm(ctx context.Context, yes bool, question string) error {
	if yes {
		return nil
	}
	if !terminal.Is(u.in) {
		return usagef("answer with --yes where there is no terminal to ask on", "refuse to %s without being sure", question)
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
		return usagef("", "nothing was changed: the answer was no")
	}
}

// stepWriter is standard error: it keeps the line of the running step at the
// bottom of a terminal, below what is logged meanwhile.
type stepWriter struct {
	mu       sync.Mutex
	w        io.Writer
	terminal bool
	shown    bool
}

const clearLine = "\r\033[K"

// Write writes what is not a step.
func (s *stepWriter) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	return s.w.Write(p)
}

func (s *stepWriter) running(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.terminal {
		return
	}
	_, _ = fmt.Fprintf(s.w, "%s… %s", clearLine, name)
	s.shown = true
}

func (s *stepWriter) finished(mark, name string, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	_, _ = fmt.Fprintf(s.w, "%s %s (%.1fs)\n", mark, name, took.Seconds())
}

func (s *stepWriter) clear() {
	if s.shown {
		_, _ = io.WriteString(s.w, clearLine)
		s.shown = false
	}
}

// Sync fits zap; standard error is not buffered.
func (s *stepWriter) Sync() error { return nil }

// during runs do as a step.
func during(u *ui, name string, do func() error) error {
	done := u.step(name)
	err := do()
	done(err)
	return err
}
