package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/capture"
	"github.com/pmk-sched/pmk-sched/internal/foresight/upgrades"
)

func simulateUpgradeCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "upgrade", Usage: "compare placements, gates and known problems at two releases",
		Description: "Schedules the pods of a snapshot again with the scheduler at its release and at the next minor " +
			"release, and compares feature gates, plugins and known problems. Without -f and --name it is the default " +
			"scheduler. The exit status is 3 if a pod is placed differently, a known problem comes, or the scheduler cannot run.",
		UsageText: command.Examples("pmk-sched simulate upgrade --snapshot cluster.tar.gz --to v1.34",
			"pmk-sched simulate upgrade --name my-scheduler -o json"),
		Flags: []cli.Flag{
			snapshotFlag(), trustFlag(), fileFlag(), nameFlag("scheduler"),
			&cli.StringFlag{Name: "from", Usage: "`RELEASE` of today's scheduler", DefaultText: "the snapshot's"},
			&cli.StringFlag{Name: "branch", Aliases: []string{"to"}, Usage: "`RELEASE` to upgrade to",
				DefaultText: "the next minor release"},
			lossyFlag(), timeoutFlag(simulateTimeout, "the schedulers to decide about all pods"), command.OutputFlag(""),
		},
		Action: func(c *cli.Context) error { return simulateUpgrade(c, u) },
	}
}

// simulateUpgrade compares a scheduler at its release and at the next one.
func simulateUpgrade(c *cli.Context, u *ui) error {
	r := upgrades.Request{To: c.String("branch")}
	r.Snapshot, r.Timeout = capture.Request{Stdin: u.In, Version: ownVersion()}, c.Duration("timeout")
	if path := c.String("snapshot"); path != "" {
		r.Snapshot.From = []string{path}
	}
	if err := readsStdinOnce(c, "file", "snapshot"); err != nil {
		return err
	}
	var err error
	if r.Scheduler, err = upgradedScheduler(c, u); err != nil {
		return err
	}
	r.Gates = inspect.FeatureGates(r.Scheduler.Args)
	if from := c.String("from"); from != "" {
		r.Scheduler.Branch = from
	}
	result, err := upgrades.Run(c.Context, u.Session, r)
	if err != nil {
		return err
	}
	if err := u.Data(c.String("output"), result, upgradeComparison(result)); err != nil {
		return err
	}
	if result.Worse() {
		return command.CheckFailed("scheduler %s differs between %s and %s", result.Scheduler, result.From, result.To)
	}
	return nil
}

// upgradedScheduler returns the scheduler from -f, the deployed scheduler that --name names, or the
// default scheduler.
func upgradedScheduler(c *cli.Context, u *ui) (pack.Scheduler, error) {
	f := nameFlags(c, u)
	f.Lossy, f.Branch = c.Bool("lossy"), c.String("from")
	sp, err := spec.Read(f)
	switch {
	case err != nil:
		return pack.Scheduler{}, err
	case f.File != "" || f.Name == "":
		return sp.Simulation(nil, nil)
	case c.IsSet("snapshot"):
		return pack.Scheduler{}, problem.Invalidf("add -f pmk-sched.yaml, or leave out --snapshot or --name",
			"--name needs the cluster, and --snapshot uses none")
	}
	return deployedScheduler(c, u, sp)
}

// upgradeComparison has the scheduler's gates; the other formats have all kube-scheduler gates.
func upgradeComparison(r *upgrades.Result) string {
	var p printer
	p.Line("scheduler %s, %s → %s", r.Scheduler, r.From, r.To)
	if r.Blocked != "" {
		p.Line("\nblocked: %s", r.Blocked)
		for _, need := range r.Needs {
			p.Line("  %s", need)
		}
	}
	p.upgradePlacements(r.Placements)
	for _, change := range slices.Concat(r.Changes, r.Warnings) {
		p.Line("\nconfiguration: %s", change)
	}
	p.Head(len(r.Plugins), "PROFILE", "PLUGIN", "CHANGE")
	for _, plugin := range r.Plugins {
		p.Row(plugin.Profile, plugin.Plugin, pluginChange(plugin))
	}
	gates := slices.DeleteFunc(slices.Clone(r.Gates), func(g upgrades.Gate) bool { return !g.Scheduling && g.Set == nil })
	p.Head(len(gates), "FEATURE GATE", r.From, r.To, "SET TO")
	for _, g := range gates {
		set := "-"
		if g.Set != nil {
			set = fmt.Sprint(*g.Set)
		}
		p.Row(g.Name, g.From, g.To, set)
	}
	if others := len(r.Gates) - len(gates); others > 0 {
		p.Line("%s too, see -o json",
			plural.Phrase(others, "gate of a linked library differs", "gates of linked libraries differ"))
	}
	for _, k := range r.New {
		p.Line("\nnew problem: %s", k)
	}
	for _, k := range r.Fixed {
		p.Line("\nfixed problem: %s (%s)", k.Effect, k.Issue)
	}
	p.notes(r.Notes)
	p.unknown(r.Unknown)
	return p.String()
}

func (p *printer) upgradePlacements(r *upgrades.Placements) {
	if r == nil {
		return
	}
	p.Line("%s scheduled again, %d and %d get a node: %s, %s, %s (%d and %d runs)",
		plural.Phrase(r.Pods, "pod is", "pods are"), r.Placed, r.NewPlaced,
		plural.Phrase(len(r.Differences), "differs", "differ"), plural.Phrase(r.Same, "is the same", "are the same"),
		plural.Phrase(r.Ties, "is a tie", "are ties"), r.Runs, r.NewRuns)
	if r.Doubtful >= 0.05 {
		p.Line("up to %.1f of the differences may be ties", r.Doubtful)
	}
	p.Head(len(r.Differences), "POD", "CHANGE", "NODE", "NEW NODE", "REASON")
	for _, d := range first(r.Differences) {
		p.Row(d.Namespace+"/"+d.Name, d.Kind, orDash(d.Node), orDash(d.NewNode), orDash(oneLine(d.Reason)))
	}
	p.more(len(r.Differences))
}

func pluginChange(plugin upgrades.Plugin) string {
	weight := ""
	switch was, is := plugin.Weight, plugin.NewWeight; {
	case was > 0 && is > 0 && was != is:
		weight = fmt.Sprintf("weight %d → %d", was, is)
	case was == 0 && is > 0:
		weight = fmt.Sprintf("weight %d", is)
	}
	return joinNonEmpty(prefixed("runs at ", strings.Join(plugin.Added, ", ")),
		prefixed("no longer at ", strings.Join(plugin.Removed, ", ")), weight)
}
