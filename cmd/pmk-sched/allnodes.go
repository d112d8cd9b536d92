package main

import (
	"cmp"
	"context"
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/replace"
	"github.com/pmk-sched/pmk-sched/internal/session"
)

func allNodesFlag(verb string) cli.Flag {
	return &cli.BoolFlag{Name: "all-nodes", Usage: "print the command for each control-plane node and its progress, or, with --pod-image, " + verb + " them all"}
}

func podImageFlag() cli.Flag {
	return &cli.StringFlag{Name: "pod-image", Usage: "with --all-nodes: run in a pod of `IMAGE` on each node; `pmk-sched build --self` makes it"}
}

// nodesCommand is a command for all control-plane nodes.
type nodesCommand struct {
	// question is the question that the user confirms.
	question string
	plan     func(ctx context.Context, command string) ([]replace.NodePlan, error)
	run      func(ctx context.Context, version string) ([]session.NodeResult, error)
}

// checkAllNodes returns an error for flags that exclude each other.
func checkAllNodes(c *cli.Context) error {
	switch {
	case c.String("pod-image") != "" && !c.Bool("all-nodes"):
		return problem.Invalidf("", "--pod-image requires --all-nodes")
	case c.String("pod-image") != "" && c.String("node") != "":
		return problem.Invalidf("", "--pod-image and --node exclude each other")
	}
	return nil
}

// allNodes prints the command for each node. With --pod-image it runs the command on each node.
func allNodes(c *cli.Context, u *ui, n nodesCommand) error {
	format := c.String("output")
	if c.String("pod-image") == "" || c.Bool("dry-run") {
		plan, err := n.plan(c.Context, nodeCommandLine(c))
		if err != nil {
			return err
		}
		u.say("run each command on its node, in this order, and continue only when it has succeeded")
		return u.data(format, plan, nodesTable(plan))
	}
	if err := u.confirm(c.Context, c.Bool("yes"), n.question); err != nil {
		return err
	}
	results, err := n.run(c.Context, ownVersion())
	if len(results) > 0 || err == nil {
		err = errors.Join(err, u.data(format, results, resultsTable(results)))
	}
	return err
}

func nodesTable(plan []replace.NodePlan) string {
	var p printer
	p.row("NODE", "DONE", "READY", "LEADER", "IMAGE", "COMMAND")
	for _, n := range plan {
		p.row(n.Node, n.Done, n.Ready && n.SchedulerReady, n.Leads, orDash(n.Image), n.Command)
	}
	return p.String()
}

func resultsTable(results []session.NodeResult) string {
	var p printer
	p.row("NODE", "CHANGED", "SCHEDULER", "BACKUP")
	for _, r := range results {
		p.row(r.Node, r.Changed, cmp.Or(r.Image, "manifest "+r.Manifest), orDash(r.Backup))
	}
	return p.String()
}
