package main

import (
	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
)

func uninstallCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "uninstall", Usage: "remove a scheduler and everything that was created for it",
		Description: "Running pods stay as they are; new pods that name the scheduler stay pending. Prints how many pods " +
			"name it, and a line for each object.",
		UsageText: command.Examples("pmk-sched uninstall --name my-scheduler", "pmk-sched uninstall -f pmk-sched.yaml --yes"),
		Flags: []cli.Flag{
			nameFlag("scheduler"), fileFlag(), timeoutFlag(defaultTimeout, "the objects to disappear"),
			yesFlag(), command.OutputFlag(""),
		},
		Action: func(c *cli.Context) error {
			sp, err := readName(c, u)
			if err != nil {
				return err
			}
			cfg, err := u.Session.Connect()
			if err != nil {
				return err
			}
			pods, err := lifecycle.PodsThatName(c.Context, u.Session, sp.Name)
			switch {
			case err != nil:
				u.Warn("pods that name the scheduler are not known: " + err.Error())
			case pods != "":
				u.Warn(pods)
			}
			if err := u.Confirm(c.Context, c.Bool("yes"), "remove scheduler "+sp.Name+" from "+cfg.Host); err != nil {
				return err
			}
			changes, err := lifecycle.Uninstall(c.Context, u.Session, sp, c.Duration("timeout"))
			if err != nil {
				return err
			}
			if len(changes) == 0 {
				changes = apply.ChangeSet{} // a list in JSON too
				u.Say("scheduler %s was not found", sp.Name)
				if hint := lifecycle.AbsentHint(c.Context, u.Session, sp.Namespace, sp.Name); hint != "" {
					u.Warn(hint)
				}
				return u.Data(c.String("output"), changes, "")
			}
			return u.Conclude(c.String("output"), changes, changes.String(),
				"scheduler "+sp.Name+" is removed; new pods that name it stay pending", "")
		},
	}
}
