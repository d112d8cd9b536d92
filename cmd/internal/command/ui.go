package command

// Rules of the UI
//
//   - Standard output is for data only, as a table, JSON or YAML.
//   - Standard error is for everything else: logs (zap), a line for each step with its duration,
//     warnings, the error and its hints.
//   - A step is "✓ name (1.2s)" when it succeeded and "✗ name (1.2s)" when it failed. A
//     duration of 0.0s is left out. On a terminal the running step is shown too, and how far it is.
//     Elsewhere a step that takes long has a line "… progress" every 30 seconds.
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
	"time"

	"go.uber.org/zap"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
)

// UI holds a command's input and output.
type UI struct {
	In  io.Reader
	Out *Output
	err *stepWriter
	// json makes steps log entries instead of lines.
	json bool

	// Version is the program's version.
	Version string

	// The rest is set when the global flags are read.
	Log       *zap.Logger
	Namespace string // empty unless it is given
	Session   *session.Session
}

// NewUI returns the UI of a program for three streams.
func NewUI(version string, in io.Reader, out, errw io.Writer) *UI {
	return &UI{
		In: in, Out: newOutput(out), err: &stepWriter{w: errw, terminal: isTerminal(errw)}, Version: version,
		Log: zap.NewNop(),
	}
}

// Streams returns standard output and standard error for the output of another program, which is
// not escaped.
func (u *UI) Streams() (out, errw io.Writer) { return u.Out.w, u.err.w }

// Step starts a step and returns the function that ends it. It is the OnStep of every package with
// long operations.
func (u *UI) Step(name string) func(err error) {
	start := time.Now()
	u.err.progressDue(start, 0)
	if !u.json {
		u.err.running(name)
	}
	return func(err error) {
		took := time.Since(start)
		switch {
		case u.json && err != nil:
			u.Log.Error("step failed", zap.String("step", name), zap.Duration("took", took), zap.Error(err))
		case u.json:
			u.Log.Info("step done", zap.String("step", name), zap.Duration("took", took))
		case err != nil:
			u.err.finished("✗", name, took)
		default:
			u.err.finished("✓", name, took)
		}
	}
}

// Progress shows how far the running step is.
func (u *UI) Progress(text string) {
	switch {
	case u.err.terminal && !u.json:
		u.err.running(text)
	case !u.err.progressDue(time.Now(), progressInterval):
	case u.json:
		u.Log.Info("step running", zap.String("progress", text))
	default:
		u.Say("… %s", text)
	}
}

// Say writes a line to standard error.
func (u *UI) Say(format string, args ...any) {
	_, _ = fmt.Fprintf(u.err, format+"\n", args...)
}

// Warn writes warnings, one a line.
func (u *UI) Warn(warnings ...string) {
	for _, w := range warnings {
		if u.json {
			u.Log.Warn(w)
		} else {
			u.Say("warning: %s", w)
		}
	}
}

// Fail writes an error and its hints to standard error.
func (u *UI) Fail(err error) {
	text := err.Error()
	if errors.Is(err, context.Canceled) {
		text = "interrupted: " + strings.TrimSuffix(text, ": "+context.Canceled.Error())
	}
	u.Say("error: %s", strings.TrimSpace(text))
	for _, hint := range problem.Hints(err) {
		u.Say("hint: %s", hint)
	}
}

// Data writes v to standard output in a format; table is v as text, see [Printer].
func (u *UI) Data(format string, v any, table string) error {
	return WriteData(u.Out, format, v, table)
}

// Conclude writes v as [UI.Data] does, and then to standard error a verdict and the next step, each
// unless it is empty.
func (u *UI) Conclude(format string, v any, table, verdict, next string) error {
	if err := u.Data(format, v, table); err != nil {
		return err
	}
	u.Verdict(verdict, next)
	return nil
}

// Verdict writes the end of a command's messages, see [UI.Conclude].
func (u *UI) Verdict(verdict, next string) {
	if verdict != "" {
		u.Say("%s", verdict)
	}
	if next != "" {
		u.Say("next: %s", next)
	}
}

// WriteData writes v to out in a format; table is v as text, see [Printer].
func WriteData(out io.Writer, format string, v any, table string) error {
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
		_, err := io.WriteString(out, Aligned(table))
		return err
	}
}

// Confirm asks before something is removed or replaced. --yes answers; with neither a terminal nor
// yes it returns an error.
func (u *UI) Confirm(ctx context.Context, yes bool, question string) error {
	return u.Ask(ctx, "yes", yes, question)
}

// Ask asks a question. The flag answers, if it is set.
func (u *UI) Ask(ctx context.Context, flag string, yes bool, question string) error {
	if yes {
		return nil
	}
	if !isTerminal(u.In) {
		return problem.Invalidf("confirm with --"+flag+" if standard input is not a terminal",
			"refusing to %s without confirmation", question)
	}
	_, _ = fmt.Fprintf(u.err, "%s? [y/N] ", question)
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(u.In).ReadString('\n')
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
