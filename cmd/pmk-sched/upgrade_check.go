package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
	"github.com/pmk-sched/pmk-sched/internal/replace"
)

func upgradeCheckCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "check", Usage: "print the pending upgrades and their changes",
		Description: "Changes nothing: the exit status is 3 if an upgrade is pending. Without --name it covers all " +
			"schedulers and all replaced default schedulers.",
		UsageText: command.Examples("pmk-sched upgrade check", "pmk-sched upgrade check -f pmk-sched.yaml --to v1.34"),
		Flags:     upgradeFlags(command.OutputFlag("")),
		Action: func(c *cli.Context) error {
			o, err := readUpgrade(c, u)
			if err == nil && (c.IsSet("file") || c.IsSet("image")) {
				err = o.Spec.RequireName()
			}
			if err != nil {
				return err
			}
			report, err := replace.CheckUpgrade(c.Context, u.Session, o, u.Namespace)
			if err != nil {
				return err
			}
			u.Warn(report.Unknown...)
			if err := u.Data(c.String("output"), report, upgradeTable(report)); err != nil {
				return err
			}
			if due, all := report.Due(); due > 0 {
				return command.CheckFailed("%d of %d schedulers are not at %s", due, all, report.Release)
			}
			u.Say("up to date: %s", report.Release)
			return nil
		},
	}
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
