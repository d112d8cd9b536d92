package main

import (
	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
)

func logsCommand(u *ui) *cli.Command {
	file := fileFlag()
	file.Aliases = nil // as in kubectl logs, -f is --follow
	return &cli.Command{
		Name: "logs", Usage: "print the logs of a scheduler's replicas",
		Description: "Each line begins with the name of its pod; the replica that schedules is marked as leader. --follow " +
			"prints new lines, also of new pods, until it is interrupted. On a terminal, control characters of the lines are " +
			"escaped.",
		UsageText: command.Examples("pmk-sched logs my-scheduler --since 10m", "pmk-sched logs my-scheduler -f"),
		Flags: []cli.Flag{
			nameFlag("scheduler"),
			file,
			&cli.DurationFlag{Name: "since", Usage: "begin this `DURATION` ago", DefaultText: "at the beginning",
				Action: positive("since")},
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "print new lines until interrupted"},
		},
		Action: func(c *cli.Context) error {
			sp, err := readName(c, u)
			if err != nil {
				return err
			}
			return lifecycle.Logs(c.Context, u.Session, sp, c.Duration("since"), c.Bool("follow"), u.Out.Logs())
		},
	}
}
