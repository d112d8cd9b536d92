package main

import (
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
)

func deployCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "deploy", Usage: "deploy a scheduler alongside the default scheduler",
		Description: "Applies every object in order and waits until the scheduler is ready and stays ready. Running it " +
			"again changes only objects that differ; without -f, --config and --preset it keeps the settings of the deployed " +
			"scheduler that no flag changes. If the scheduler does not become ready, its last log lines are printed " +
			"and the previous revision is restored.",
		UsageText: command.Examples("pmk-sched deploy --name my-scheduler --image registry.example.com/kube-scheduler:v1.24.3",
			"pmk-sched deploy -f pmk-sched.yaml --dry-run",
			"pmk-sched deploy --name my-scheduler --image localhost/kube-scheduler:v1.24.3 --preset binpack"),
		Flags: schedulerFlags(
			&cli.BoolFlag{Name: "dry-run", Usage: "run all checks and print the changes without making them"},
			&cli.BoolFlag{Name: "no-rollback", Usage: "do not undo a failed deployment"},
			timeoutFlag(defaultTimeout, "the scheduler"), stableForFlag(10*time.Second),
			command.OutputFlag("")),
		Action: func(c *cli.Context) error {
			sp, err := readSpec(c, u)
			if err != nil {
				return err
			}
			if c.Bool("dry-run") {
				changes, err := lifecycle.DryRun(c.Context, u.Session, sp)
				if err != nil {
					return err
				}
				u.Say("dry run: nothing was changed")
				return u.Data(c.String("output"), deploy.Outcome{Changes: changes}, changes.String())
			}
			plan, outcome, err := lifecycle.Deploy(c.Context, u.Session, sp, runOptions(c))
			if err != nil {
				return err
			}
			return u.Conclude(c.String("output"), outcome, outcome.Changes.String(),
				fmt.Sprintf("scheduler %s is deployed (revision %d)", plan.Name, outcome.Revision),
				fmt.Sprintf("`%s`, then %s", plan.Command("verify"), useScheduler(plan.Name)))
		},
	}
}
