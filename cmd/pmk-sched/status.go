package main

import (
	"context"
	"errors"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy/health"
	"github.com/pmk-sched/pmk-sched/internal/replace"
)

func statusCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "status", Usage: "show the schedulers and extenders managed by pmk-sched, and detect problems",
		Description: "Shows for each scheduler and extender: differences of its objects from the newest revision, and who " +
			"made them; replicas and their nodes; the leader lease; its release and the release of the cluster; credentials; " +
			"pending pods of the scheduler; scheduling attempts and latency; the last warnings. On a control-plane node it " +
			"compares the files of the default scheduler with the files that replace wrote. The exit status is 3 if there are " +
			"findings; docs/operations.md lists them. Changes nothing: objects are compared by a dry run of the API server.",
		UsageText: examples("pmk-sched status", "pmk-sched status --name my-scheduler --watch", "pmk-sched status -o json"),
		Flags: []cli.Flag{
			nameFlag("scheduler or extender"),
			&cli.BoolFlag{Name: "watch", Aliases: []string{"w"}, Usage: "print again when something has changed, until interrupted"},
			outputFlag(""),
		},
		Action: func(c *cli.Context) error {
			read := func(ctx context.Context) (*replace.Status, error) {
				return replace.ReadStatus(ctx, u.session, c.String("name"), u.namespace)
			}
			if c.Bool("watch") {
				return watchStatus(c.Context, u, c.String("output"), statusInterval, read)
			}
			status, err := read(c.Context)
			if status == nil || problem.IsInvalid(err) {
				return err
			}
			u.warn(status.Unknown...)
			return errors.Join(u.data(c.String("output"), status, statusText(status)), err)
		},
	}
}

const statusInterval = 5 * time.Second

// clearScreen moves the cursor of a terminal to its first line and clears the rest.
const clearScreen = "\033[H\033[2J"

// watchStatus prints the status when it has changed, until ctx ends, which is not an error. Only the first reading has to succeed.
func watchStatus(ctx context.Context, u *ui, format string, interval time.Duration, read func(context.Context) (*replace.Status, error)) error {
	shown := ""
	for {
		status, err := read(ctx)
		var findings *health.FindingsError
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the user ends it that way
		case err != nil && !errors.As(err, &findings):
			if shown == "" {
				return err
			}
			u.warn(err.Error())
		default:
			text := statusText(status) + findingsText(status.Findings)
			if text == shown {
				break
			}
			shown = text
			u.warn(status.Unknown...)
			if format == "table" {
				text = watchHeader(u.out.terminal) + text
			}
			if err := u.data(format, status, text); err != nil {
				return err
			}
		}
		if clock.Sleep(ctx, interval) != nil {
			return nil //nolint:nilerr // the user ends it that way
		}
	}
}

// watchHeader separates a status from the previous status. On a terminal it clears the screen.
func watchHeader(terminal bool) string {
	head := "at " + time.Now().UTC().Format(time.RFC3339) + "\n\n"
	if terminal {
		return clearScreen + head
	}
	return "\n" + head
}
