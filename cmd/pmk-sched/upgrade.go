package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
	"github.com/pmk-sched/pmk-sched/internal/replace"
)

func upgradeCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "upgrade", Usage: "deploy a scheduler at the release of the API server",
		Description: "Builds the image with the same plugins, converts the configuration, deploys with the same flags or " +
			"file, and verifies that the scheduler binds a pod; otherwise the former revision is restored. It asks before it " +
			"builds, unless the file of -f names the image: the cluster records the name to push to, and the code. " +
			"`simulate upgrade` predicts the effects.\n\n" +
			"--default upgrades the replaced default scheduler of this control-plane node from the request that replace " +
			"recorded. Run it on one node after the other, in the order that `upgrade check` prints.",
		UsageText: command.Examples("pmk-sched upgrade -f pmk-sched.yaml",
			"pmk-sched upgrade --name my-scheduler",
			"pmk-sched upgrade --default --yes"),
		Subcommands: []*cli.Command{upgradeCheckCommand(u)},
		Flags: upgradeFlags(
			&cli.BoolFlag{Name: "default", Usage: "upgrade the replaced default scheduler of this node"},
			timeoutFlag(defaultTimeout, "the scheduler"), stableForFlag(10*time.Second), yesFlag(), command.OutputFlag("")),
		Action: func(c *cli.Context) error {
			o, err := readUpgrade(c, u)
			if err != nil {
				return err
			}
			o.Confirm = u.confirmRecorded("yes", c.Bool("yes"))
			if c.Bool("default") {
				if c.String("name") != "" || c.String("branch") != "" {
					return problem.Invalidf("", "--default excludes --name and --branch")
				}
				return upgradeDefault(c.Context, u, o, c.Bool("yes"), c.String("output"))
			}
			if err := u.requireName(c, o.Spec); err != nil {
				return err
			}
			u.confirmPermissions(c)
			return runUpgrade(c.Context, u, o, c.String("output"))
		},
	}
}

func runUpgrade(ctx context.Context, u *ui, o lifecycle.UpgradeOptions, format string) error {
	report, outcome, err := lifecycle.RunUpgrade(ctx, u.Session, o)
	plan := deploy.Plan{Name: o.Spec.Name, Namespace: o.Spec.Namespace}
	switch {
	case err != nil:
		return err
	case report.Due:
		return u.Conclude(format, outcome, outcome.Changes.String(),
			fmt.Sprintf("scheduler %s is upgraded from %s to %s (revision %d), and binds pods", report.Name, report.Release,
				report.Target, outcome.Revision),
			"`"+plan.Command("status")+"`; undo it with `"+plan.Command("rollback")+"`")
	}
	return u.Conclude(format, outcome, outcome.Changes.String(),
		"scheduler "+report.Name+" is up to date: "+report.Release, "")
}

func upgradeDefault(ctx context.Context, u *ui, o lifecycle.UpgradeOptions, yes bool, format string) error {
	plan, err := replace.PlanDefaultUpgrade(ctx, u.Session, o)
	if err != nil {
		return err
	}
	if !plan.Due {
		u.Say("the default scheduler of node %s is up to date: %s", plan.Name, plan.Release)
		return u.Data(format, plan, "")
	}
	u.Warn(plan.Drift...) // edits are lost
	image := cmp.Or(plan.NewImage, "the image in the manifest")
	if plan.Build {
		image += " (to build)"
	}
	u.Say("node %s: %s becomes %s, with %s", plan.Name, plan.Image, image,
		cmp.Or(plan.Configuration, "its own configuration"))
	if err := u.Confirm(ctx, yes, "replace the default scheduler of this node, which serves "+plan.Server); err != nil {
		return err
	}
	outcome, err := plan.Run(ctx)
	if err != nil {
		return err
	}
	verdict := fmt.Sprintf("the default scheduler of node %s is upgraded from %s to %s", outcome.Node, plan.Release, plan.Target)
	if plan.Release == plan.Target {
		verdict = fmt.Sprintf("the default scheduler of node %s, %s, is replaced again", outcome.Node, plan.Target)
	}
	return u.Conclude(format, outcome, replacedTable(outcome), verdict, "`pmk-sched verify --default`")
}
