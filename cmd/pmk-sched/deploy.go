package main

import (
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/extenders"
	"github.com/pmk-sched/pmk-sched/internal/install"
)

// defaultDeployTimeout leaves time to pull an image over a slow line.
const defaultDeployTimeout = 5 * time.Minute

func deployCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:  "deploy",
		Usage: "put a scheduler beside the default one, and wait until it is steady",
		Description: "Every object is applied in order; a second run changes only what differs. If the scheduler does not become\n" +
			"steady, its last log lines are shown and what ran before comes back. Prints a line for each object.",
		Flags: append(schedulerFlags(),
			&cli.BoolFlag{Name: "dry-run", Usage: "check everything and print what would change, but change nothing"},
			&cli.BoolFlag{Name: "no-rollback", Usage: "leave a failed deployment as it is, to look at"},
			&cli.DurationFlag{Name: "timeout", Value: defaultDeployTimeout, Usage: "give up after `DURATION` of waiting for the scheduler"},
			outputFlag()),
		Action: func(c *cli.Context) error { return deploy(c, u) },
	}
}

func deploy(c *cli.Context, u *ui) error {
	if err := checkTimeout(c); err != nil {
		return err
	}
	o, err := readOptions(c)
	if err != nil {
		return err
	}
	cfg, err := connect(c, u)
	if err != nil {
		return err
	}
	deps, err := newDeps(c, u, cfg)
	if err != nil {
		return err
	}
	s, err := prepareScheduler(c, u, cfg, o)
	if err != nil {
		return err
	}
	if c.Bool("dry-run") {
		plan, err := planScheduler(c, u, deps, s)
		if err != nil {
			return err
		}
		changes, err := install.DryRun(c.Context, deps, plan)
		if err != nil {
			return err
		}
		u.say("nothing was changed: this was a dry run")
		return u.data(c.String("o"), install.Outcome{Changes: changes}, writeText(changes.String()))
	}
	s.DeployOptions = install.DeployOptions{Timeout: c.Duration("timeout"), NoRollback: c.Bool("no-rollback")}
	plan, outcome, err := extenders.DeployScheduler(c.Context, deps, s)
	if err != nil {
		return err
	}
	u.say("scheduler %s is deployed (revision %d); prove it with `%s`", plan.Name, outcome.Revision, plan.Command("verify"))
	return u.data(c.String("o"), outcome, writeText(outcome.Changes.String()))
}

// checkTimeout refuses a --timeout in which nothing can be done.
func checkTimeout(c *cli.Context) error {
	if c.Duration("timeout") <= 0 {
		return usagef("", "--timeout %s: it has to be above 0", c.Duration("timeout"))
	}
	return nil
}

// writeText writes a text that is data as it is.
func writeText(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := fmt.Fprint(w, text)
		return err
	}
}
