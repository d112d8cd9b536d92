package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
)

// confirmRecorded returns a function that prints code or an image name from a cluster, and asks
// before it is used. The flag answers, if it is set.
func (u *ui) confirmRecorded(flag string, yes bool) lifecycle.Confirm {
	return func(ctx context.Context, found *pack.Unconfirmed) error {
		if found.Image == "" {
			u.Say("%s has code that this machine has not built:", found.Origin)
		} else {
			u.Say("%s names the image to build:\n  image %s", found.Origin, oneLine(found.Image))
		}
		for _, line := range found.Content {
			u.Say("  %s", oneLine(line))
		}
		err := u.Ask(ctx, flag, yes, found.Action())
		if len(problem.Hints(err)) == 0 {
			return err // the user has answered
		}
		return problem.WithHint(err, "or "+found.Alternative())
	}
}

// confirmPermissions makes the session ask before a revision gives a scheduler permissions that it
// does not have. The command's --yes answers.
func (u *ui) confirmPermissions(c *cli.Context) {
	u.Session.Confirm = func(ctx context.Context, question string) error {
		return u.Confirm(ctx, c.Bool("yes"), oneLine(question))
	}
}
