//go:build linux

package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/lab"
)

func labNodeCommand(u *ui) *cli.Command {
	change := func(name, usage string, do func(*lab.Lab, context.Context, string) error) *cli.Command {
		return &cli.Command{
			Name: name, Usage: usage, ArgsUsage: "NODE", Flags: labFlags(),
			UsageText: examples("pmk-sched lab node "+name+" --name ha ha-2", "pmk-sched lab node "+name+" --name ha ha-worker-1"),
			Action: func(c *cli.Context) error {
				if c.NArg() != 1 {
					return problem.Invalidf("`pmk-sched lab status` lists the nodes", "expected the name of one node, got %d arguments", c.NArg())
				}
				l, err := lab.Get(c.String("lab-dir"), c.String("name"))
				if err != nil {
					return err
				}
				done := u.step(name + " node " + c.Args().First())
				err = do(l, c.Context, c.Args().First())
				done(err)
				return err
			},
		}
	}
	return &cli.Command{
		Name: "node", Usage: "stop or start a node of a lab, or cut or restore its network",
		Subcommands: []*cli.Command{
			change("stop", "kill all processes of a node at once, as a loss of power does", (*lab.Lab).StopNode),
			change("start", "start a node that was stopped", (*lab.Lab).StartNode),
			change("cut", "disconnect a node from the network; it keeps running", (*lab.Lab).CutNode),
			change("heal", "connect a node to the network again", (*lab.Lab).HealNode),
		},
	}
}
