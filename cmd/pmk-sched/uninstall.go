package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/apply"
	"github.com/pmk-sched/pmk-sched/internal/extenders"
	"github.com/pmk-sched/pmk-sched/internal/install"
	"github.com/pmk-sched/pmk-sched/internal/problem"
)

func uninstallCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:        "uninstall",
		Usage:       "remove everything that was made for a scheduler, and nothing else",
		Description: "Pods that name the scheduler stay as they are; new ones will wait. Prints a line for each object.",
		Flags: []cli.Flag{
			nameFlag(), fileFlag(),
			&cli.DurationFlag{Name: "timeout", Value: defaultDeployTimeout, Usage: "give up after `DURATION` of waiting until the objects are gone"},
			&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask"},
			outputFlag(),
		},
		Action: func(c *cli.Context) error {
			name, namespace, err := readName(c)
			if err != nil {
				return err
			}
			if err := checkTimeout(c); err != nil {
				return err
			}
			cfg, err := connect(c, u)
			if err != nil {
				return err
			}
			if err := u.confirm(c.Context, c.Bool("yes"), fmt.Sprintf("remove scheduler %s from %s", name, cfg.Host)); err != nil {
				return err
			}
			deps, err := newDeps(c, u, cfg)
			if err != nil {
				return err
			}
			list, err := extendersOf(c)
			if err != nil {
				return err
			}
			changes, err := uninstallWithin(c.Context, c.Duration("timeout"), deps, namespace, name)
			if err != nil {
				return err
			}
			for _, e := range list {
				more, err := extenders.Uninstall(c.Context, deps, extenders.UninstallOptions{Name: e.Call.Name, Namespace: e.Namespace})
				if err != nil {
					return err
				}
				changes = append(changes, more...)
			}
			if len(changes) == 0 {
				changes = apply.ChangeSet{} // a list in JSON too
				u.say("nothing of a scheduler %s was found", name)
			}
			return u.data(c.String("o"), changes, writeText(changes.String()))
		},
	}
}

func uninstallWithin(ctx context.Context, timeout time.Duration, deps install.Deps, namespace, name string) (apply.ChangeSet, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	changes, err := install.Uninstall(ctx, deps, namespace, name)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = problem.WithHint(err, "is the node of one of its pods away? Uninstall again: it goes on where it stopped")
	}
	return changes, err
}
