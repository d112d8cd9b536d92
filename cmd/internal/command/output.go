package command

import (
	"errors"
	"io"
	"syscall"
)

// Output is standard output. When its reader has gone, because a pipe or the terminal was closed,
// writes are discarded: the cluster's state decides whether a command succeeded, not who reads the
// result. Other failures, such as a full disk, are errors. Write escapes control characters.
type Output struct {
	w        io.Writer
	escaper  escaper
	terminal bool
	closed   bool
}

func newOutput(w io.Writer) *Output { return &Output{w: w, terminal: isTerminal(w)} }

// Write writes text with escaped control characters.
func (o *Output) Write(p []byte) (int, error) {
	if _, err := o.control(o.escaper.escape(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// clearScreen moves a terminal's cursor to its first line and clears the rest.
const clearScreen = "\033[H\033[2J"

// NextPage writes a title for text that replaces the previous text. On a terminal it clears the
// screen.
func (o *Output) NextPage(title string) error {
	separator := "\n"
	if o.terminal {
		separator = clearScreen
	}
	_, err := o.control([]byte(separator + title + "\n\n"))
	return err
}

// Logs returns a writer for log lines. Except on a terminal it writes them unchanged, as `kubectl
// logs` does.
func (o *Output) Logs() io.Writer {
	if o.terminal {
		return o
	}
	return unescaped{o}
}

// unescaped writes to an Output without escaping control characters.
type unescaped struct{ o *Output }

// Write writes p unchanged.
func (u unescaped) Write(p []byte) (int, error) { return u.o.control(p) }

// control writes p unchanged: control characters from pmk-sched itself.
func (o *Output) control(p []byte) (int, error) {
	if o.closed {
		return len(p), nil
	}
	n, err := o.w.Write(p)
	// A terminal that was closed answers EIO (tty_ioctl(4), hung-up terminals).
	if o.closed = errors.Is(err, syscall.EPIPE) || o.terminal && errors.Is(err, syscall.EIO); o.closed {
		return len(p), nil
	}
	return n, err
}
