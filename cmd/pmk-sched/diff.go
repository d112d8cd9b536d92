package main

import (
	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/apply"
	"github.com/pmk-sched/pmk-sched/internal/install"
)

func diffCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:        "diff",
		Usage:       "print what deploy would change",
		Description: "The API server compares, by dry-run. Exit status 3 when something differs.",
		Flags:       append(schedulerFlags(), outputFlag()),
		Action: func(c *cli.Context) error {
			cfg, plan, err := planFromFlags(c, u)
			if err != nil {
				return err
			}
			deps, err := newDeps(c, u, cfg)
			if err != nil {
				return err
			}
			changes, err := install.Diff(c.Context, deps, plan)
			if err != nil {
				return err
			}
			if err := u.data(c.String("o"), changes, writeText(diffText(changes))); err != nil {
				return err
			}
			if changes.Changed() {
				return &exitError{status: statusCheckFailed}
			}
			u.say("the cluster is as it would be deployed")
			return nil
		},
	}
}

// diffText is the differences, and a line for each object that would go.
func diffText(changes apply.ChangeSet) string {
	var removed apply.ChangeSet
	for _, change := range changes {
		if change.Action == apply.Deleted {
			removed = append(removed, change)
		}
	}
	return changes.Diff() + removed.String()
}
