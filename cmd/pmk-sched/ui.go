package main

import (
	"fmt"
	"io"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
)

// ui is a [command.UI] with methods for the commands.
type ui struct{ *command.UI }

// useScheduler is the next step once a scheduler binds pods.
func useScheduler(name string) string {
	return fmt.Sprintf("put \"schedulerName: %s\" into the spec of a pod", name)
}

func newUI(in io.Reader, out, errw io.Writer) *ui {
	return &ui{command.NewUI(ownVersion(), in, out, errw)}
}
