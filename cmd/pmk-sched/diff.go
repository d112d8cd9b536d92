package main

import (
	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/apply"
)

func diffCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:        "diff",
		Usage:       "print what deploy would change",
		Description: "The API server compares, by dry run. A scheduler that Helm installed is compared with the chart that\n" +
			"render --helm-chart writes. The exit status is 3 if something differs.",
		UsageText: examples(
			"pmk-sched diff -f pmk-sched.yaml",
			"pmk-sched diff --name my-scheduler --image registry.example.com/kube-scheduler:v1.24.3 -o json",
		),
		Flags: schedulerFlags(outputFlag("")),
		Action: func(c *cli.Context) error {
			sp, err := readSpec(c, u)
			if err != nil {
				return err
			}
			changes, err := u.session.Diff(c.Context, sp)
			if err != nil {
				return err
			}
			if err := u.data(c.String("output"), changes, writeText(diffText(changes))); err != nil {
				return err
			}
			if changes.Changed() {
				return &exitError{status: statusCheckFailed}
			}
			u.say("no changes")
			return nil
		},
	}
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
