package main

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
	"github.com/pmk-sched/pmk-sched/internal/replace"
)

func upgradeCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "upgrade", Usage: "deploy a scheduler at the release of the API server",
		Description: "Builds the image with the same plugins, converts the configuration, deploys with the same flags or " +
			"file, and verifies that the scheduler binds a pod; otherwise the former revision is restored. It asks before it " +
			"builds, unless the file of -f names the image: the cluster records the name to push to, and the code. With " +
			"--check nothing is changed: the exit status is 3 if an upgrade is pending. Without --name it covers all " +
			"schedulers and all replaced default schedulers.\n\n" +
			"--default upgrades the replaced default scheduler of this control-plane node, as replace does, and keeps its " +
			"configuration. Run it on one node after the other, in the order that --check prints.\n\n" +
			"--check --simulate compares a scheduler at its release and at the next minor release: it schedules the pods of a " +
			"snapshot again with both, and compares feature gates, plugins and known problems. Without -f and --name it is the " +
			"default scheduler. The cluster is only read, and with --snapshot not at all. The exit status is 3 if a pod is " +
			"placed differently, a known problem comes, or the scheduler cannot run.",
		UsageText: command.Examples("pmk-sched upgrade --check --simulate --snapshot cluster.tar.gz --to v1.34",
			"pmk-sched upgrade --name my-scheduler",
			"pmk-sched upgrade --default --yes"),
		Flags: []cli.Flag{
			nameFlag("scheduler"), fileFlag(),
			&cli.BoolFlag{Name: "check", Usage: "print the pending upgrades and their changes"},
			&cli.BoolFlag{Name: "default", Usage: "upgrade the replaced default scheduler of this node"},
			&cli.StringFlag{Name: "branch", Aliases: []string{"to"}, Usage: "`RELEASE` to upgrade to",
				DefaultText: "the API server's; with --simulate the next minor release"},
			&cli.BoolFlag{Name: "simulate", Usage: "with --check: compare placements, gates, plugins and problems of two releases"},
			&cli.StringFlag{Name: "snapshot", Usage: "with --simulate: " + snapshotUsage, DefaultText: "a new one of the cluster"},
			&cli.StringFlag{Name: "from", Usage: "with --simulate: `RELEASE` of today's scheduler", DefaultText: "the snapshot's"},
			trustFlag(),
			&cli.StringFlag{Name: "image", Usage: "`REFERENCE` of an image of that release, which was built elsewhere",
				DefaultText: "build it"},
			requireSignatureFlag(),
			&cli.StringFlag{Name: "base", Usage: "base `IMAGE` of the image to build", DefaultText: "as before"},
			&cli.StringFlag{Name: "busybox", Usage: "`PATH` of a static busybox to use as base, without a registry",
				DefaultText: "as before"},
			&cli.BoolFlag{Name: "lossy", Usage: "drop settings that the release does not support, with a warning for each"},
			timeoutFlag(defaultTimeout, "the scheduler"), stableForFlag(10 * time.Second), yesFlag(), command.OutputFlag(""),
		},
		Action: func(c *cli.Context) error {
			if c.Bool("simulate") {
				if !c.Bool("check") || c.Bool("default") {
					return problem.Invalidf("use --check --simulate", "--simulate needs --check, and excludes --default")
				}
				return simulateUpgrade(c, u)
			}
			for _, name := range []string{"snapshot", "from", trustRecorded} {
				if c.IsSet(name) {
					return problem.Invalidf("add --check --simulate", "--%s needs --simulate", name)
				}
			}
			o, err := readUpgrade(c, u)
			if err != nil {
				return err
			}
			check := c.Bool("check")
			if c.Bool("default") {
				if check || c.String("name") != "" || c.String("branch") != "" {
					return problem.Invalidf("--check alone reports the default schedulers too",
						"--default excludes --name, --branch and --check")
				}
				return upgradeDefault(c.Context, u, o, c.Bool("yes"), c.String("output"))
			}
			if !check || c.IsSet("file") || c.IsSet("image") {
				if err := o.Spec.RequireName(); err != nil {
					return err
				}
			}
			if check {
				return checkUpgrade(c.Context, u, o, c.String("output"))
			}
			o.Confirm = u.confirmRecorded("yes", c.Bool("yes"))
			u.confirmPermissions(c)
			report, outcome, err := lifecycle.RunUpgrade(c.Context, u.Session, o)
			switch {
			case err != nil:
				return err
			case report.Due:
				u.Say("scheduler %s is upgraded from %s to %s (revision %d), and binds pods", report.Name, report.Release,
					report.Target, outcome.Revision)
			default:
				u.Say("scheduler %s is up to date: %s", report.Name, report.Release)
			}
			return u.Data(c.String("output"), outcome, outcome.Changes.String())
		},
	}
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
	image := plan.NewImage
	if plan.Build {
		image += " (to build)"
	}
	u.Say("node %s: %s becomes %s, with %s", plan.Name, plan.Image, image,
		cmp.Or(plan.Configuration, "the given configuration"))
	if err := u.Confirm(ctx, yes, "replace the default scheduler of this node, which serves "+plan.Server); err != nil {
		return err
	}
	outcome, err := plan.Run(ctx)
	if err != nil {
		return err
	}
	if plan.Release == plan.Target {
		u.Say("the default scheduler of node %s, %s, is replaced again", outcome.Node, plan.Target)
	} else {
		u.Say("the default scheduler of node %s is upgraded from %s to %s", outcome.Node, plan.Release, plan.Target)
	}
	return u.Data(format, outcome, replacedTable(outcome))
}

func checkUpgrade(ctx context.Context, u *ui, o lifecycle.UpgradeOptions, format string) error {
	report, err := replace.CheckUpgrade(ctx, u.Session, o, u.Namespace)
	if err != nil {
		return err
	}
	u.Warn(report.Unknown...)
	if err := u.Data(format, report, upgradeTable(report)); err != nil {
		return err
	}
	if due, all := report.Due(); due > 0 {
		return command.CheckFailed("%d of %d schedulers are not at %s", due, all, report.Release)
	}
	u.Say("up to date: %s", report.Release)
	return nil
}

func upgradeTable(r *replace.UpgradeReport) string {
	var p printer
	p.Row("SCHEDULER", "NAMESPACE", "RELEASE", "TARGET", "DUE")
	for _, s := range r.Schedulers {
		p.Row(s.Name, s.Namespace, orDash(s.Release), s.Target, s.Due)
	}
	for _, s := range r.Schedulers {
		if s.Due {
			p.upgrade(s)
		}
	}
	p.Head(len(r.Nodes), "NODE", "DEFAULT SCHEDULER", "REPLACED", "DUE", "NEEDS")
	for _, n := range r.Nodes {
		p.Row(n.Node, n.Image, n.Replaced, n.Due, orDash(strings.Join(append(n.Drift, prefixed("", n.Needs)), "; ")))
	}
	return p.String()
}

func (p *printer) upgrade(s lifecycle.Upgrade) {
	p.Line("\n%s", s.Name)
	row := func(name string, values ...string) {
		for _, value := range values {
			if value != "" {
				p.Row("  "+name, value)
				name = ""
			}
		}
	}
	row("blocked", strings.Split(s.Blocked, "\n")...)
	row("needs", s.Needs...)
	image := s.NewImage
	if s.Build {
		image += " (to build" + prefixed(", with ", strings.Join(s.Plugins, ", ")) + ")"
	}
	if s.Blocked == "" {
		row("image", image)
		row("config API", configAPI(s))
	}
	row("change", s.Changes...)
	row("warning", s.Warnings...)
	row("known problem", s.KnownProblems...)
	row("upgrade with", s.Command)
}

// configAPI returns a scheduler's config API, and the new one if its configuration is converted.
func configAPI(s lifecycle.Upgrade) string {
	if s.From == s.To {
		return s.To
	}
	return s.From + ", converted to " + s.To
}
