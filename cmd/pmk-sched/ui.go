package main

import (
	"io"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
)

// ui is a [command.UI] with methods for the commands.
type ui struct{ *command.UI }

func newUI(in io.Reader, out, errw io.Writer) *ui {
	return &ui{command.NewUI(ownVersion(), in, out, errw)}
}
