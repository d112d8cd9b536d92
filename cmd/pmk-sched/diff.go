package main

import (
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
)

func diffCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "diff", Usage: "print the changes that deploy would make",
		Description: "Compares the objects with the cluster by a dry run of the API server. A scheduler that Helm " +
			"installed is compared with the chart that render chart writes. The exit status is 3 if there are " +
			"differences. With --revision it prints the changes that `rollback` would make; of the other flags, only flags " +
			"that name the scheduler apply then.",
		UsageText: command.Examples("pmk-sched diff -f pmk-sched.yaml",
			"pmk-sched diff --name my-scheduler --image registry.example.com/kube-scheduler:v1.24.3 -o json",
			"pmk-sched diff --name my-scheduler --revision 3"),
		Flags: schedulerFlags(
			&cli.IntFlag{
				Name: "revision", Usage: "compare with `REVISION`, see `pmk-sched history`", Action: validRevision("revision"),
			},
			command.OutputFlag("")),
		Action: func(c *cli.Context) error {
			changes, err := differences(c, u)
			if err != nil {
				return err
			}
			if err := u.Data(c.String("output"), changes, diffText(changes)); err != nil {
				return err
			}
			if changes.Changed() {
				return &command.ExitError{Status: command.StatusCheckFailed}
			}
			u.Say("no changes")
			return nil
		},
	}
}

func differences(c *cli.Context, u *ui) (apply.ChangeSet, error) {
	if !c.IsSet("revision") {
		sp, err := readSpec(c, u)
		if err != nil {
			return nil, err
		}
		return lifecycle.Diff(c.Context, u.Session, sp)
	}
	for _, flag := range c.Command.Flags {
		name := flag.Names()[0]
		if isGlobalFlag(name) || slices.Contains([]string{"revision", "name", "file", "output"}, name) {
			continue
		}
		if err := exclude(c, "a revision has its own image and configuration", "revision", name); err != nil {
			return nil, err
		}
	}
	sp, err := readName(c, u)
	if err != nil {
		return nil, err
	}
	return lifecycle.DiffRevision(c.Context, u.Session, sp, c.Int("revision"))
}

// diffText is the differences, followed by a line for each object that would be deleted.
func diffText(changes apply.ChangeSet) string {
	var removed apply.ChangeSet
	for _, change := range changes {
		if change.Action == apply.Deleted {
			removed = append(removed, change)
		}
	}
	return changes.Diff() + removed.String()
}
