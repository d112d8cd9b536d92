package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/base/steps"
)

// operationSteps are the steps of the program operation; the last but one commits.
var operationSteps = []string{"prepare", "swap", "prove", "commit", "clean up"}

// operation is a program that changes the file "state" in the working directory from "original" to
// "replaced", by way of "half", with the signals, the output and the steps of pmk-sched. Each step
// waits for a file with its name, and so does the undo.
func operation() {
	ctx := command.Interruptible(context.Background())
	u := newUI(os.Stdin, os.Stdout, os.Stderr)
	write := func(state string) error { return os.WriteFile("state", []byte(state), 0o600) }
	var list []steps.Step
	for _, name := range operationSteps {
		do := func() error { return nil }
		switch name {
		case "swap":
			do = func() error { return write("half") }
		case "commit":
			do = func() error { return write("replaced") }
		}
		step := steps.Step{Name: name, Commit: name == "commit", Do: func(ctx context.Context) error {
			return errors.Join(do(), awaitFile(ctx, name))
		}}
		if name == "swap" {
			step.Undo = func(ctx context.Context, _ error) error {
				return errors.Join(awaitFile(ctx, "undo"), write("original"))
			}
		}
		list = append(list, step)
	}
	err := steps.Run(ctx, list, u.Step)
	if err == nil {
		err = u.Data("json", "replaced", "")
	}
	if err != nil {
		u.Fail(err)
	}
	os.Exit(command.ExitStatus(err))
}

// awaitFile waits until a file exists.
func awaitFile(ctx context.Context, name string) error {
	for {
		if _, err := os.Stat(name); err == nil {
			return nil
		}
		if err := clock.Sleep(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}
