package main

import (
	"errors"
	"io"
	"syscall"

	"github.com/pmk-sched/pmk-sched/internal/base/terminal"
)

// output is standard output. When its reader has gone, because a pipe or the terminal was closed,
// writes are discarded: the state of the cluster decides whether a command succeeded, not who reads
// the result. Other failures, such as a full disk, are errors.
type output struct {
	w        io.Writer
	terminal bool
	closed   bool
}

func newOutput(w io.Writer) *output { return &output{w: w, terminal: terminal.Is(w)} }

func (o *output) Write(p []byte) (int, error) {
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
