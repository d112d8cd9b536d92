package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/replace"
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
	run      func(ctx context.Context, version string) ([]replace.NodeResult, error)
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

func nodesTable(plan []replace.NodePlan) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := fmt.Fprintln(w, "NODE\tDONE\tREADY\tLEADER\tIMAGE\tCOMMAND")
		for _, n := range plan {
			if err == nil {
				_, err = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", n.Node, yesNo(n.Done), yesNo(n.Ready && n.SchedulerReady), yesNo(n.Leads), cmp.Or(n.Image, "-"), n.Command)
			}
		}
		return err
	}
}

func resultsTable(results []replace.NodeResult) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := fmt.Fprintln(w, "NODE\tCHANGED\tSCHEDULER\tBACKUP")
		for _, r := range results {
			if err == nil {
				_, err = fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.Node, yesNo(r.Changed), cmp.Or(r.Image, "manifest "+r.Manifest), cmp.Or(r.Backup, "-"))
			}
		}
		return err
	}
}
