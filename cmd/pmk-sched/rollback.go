package main

import (
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
)

func rollbackCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "rollback", Usage: "deploy an earlier revision of a scheduler again",
		Description: "Deploys image, configuration, permissions, credentials and extenders of an earlier revision as a new " +
			"revision. Like `deploy` it checks first and waits until the scheduler is ready and stays ready; otherwise the " +
			"current revision is restored. `diff --revision` prints the changes.",
		UsageText: command.Examples("pmk-sched rollback --name my-scheduler", "pmk-sched rollback --name my-scheduler --to 3"),
		Flags: []cli.Flag{
			nameFlag("scheduler"), fileFlag(),
			&cli.IntFlag{Name: "to", Usage: "`REVISION` to return to, see `pmk-sched history`",
				DefaultText: "the revision before the current one", Action: validRevision("to")},
			timeoutFlag(defaultTimeout, "the scheduler"), stableForFlag(10 * time.Second), yesFlag(), command.OutputFlag(""),
		},
		Action: func(c *cli.Context) error {
			sp, err := readName(c, u)
			if err != nil {
				return err
			}
			u.confirmPermissions(c)
			plan, outcome, err := lifecycle.RollBack(c.Context, u.Session, sp, c.Int("to"), runOptions(c))
			if err != nil {
				return err
			}
			return u.Conclude(c.String("output"), outcome, outcome.Changes.String(),
				fmt.Sprintf("scheduler %s: %s is deployed (revision %d)", plan.Name, plan.Origin, outcome.Revision),
				"`"+plan.Command("verify")+"`")
		},
	}
}
