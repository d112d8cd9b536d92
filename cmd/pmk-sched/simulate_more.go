package main

import (
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
)

func simulateAddCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "add", Usage: "show where the pods of manifests would go, and how many more copies fit",
		Description: "Pods, Deployments, ReplicaSets, StatefulSets and Jobs are added as their controllers would add them. " +
			"Then copies are added until a pod does not fit. Pending pods of the snapshot are left out.",
		UsageText: command.Examples("pmk-sched simulate add -m deployment.yaml",
			"pmk-sched simulate add -m deployment.yaml --count 5 --snapshot cluster.tar.gz -o json"),
		Flags: simulateFlags(u,
			&cli.StringSliceFlag{
				Name: "manifests", Aliases: []string{"m"},
				Usage: "add the pods of manifests at `PATH`: a file, a directory, or - for standard input",
			},
			&cli.IntFlag{Name: "count", Value: 1, Usage: "`NUMBER` of copies to add", Action: atLeast("count", 1)},
			&cli.IntFlag{Name: "limit", Value: scenario.DefaultLimit, Usage: "try at most `NUMBER` more copies",
				Action: atLeast("limit", 0)},
		),
		Action: func(c *cli.Context) error {
			step := scenario.Step{
				Scenario: "add", Files: c.StringSlice("manifests"), Count: c.Int("count"), Limit: c.Int("limit"),
			}
			if len(step.Files) == 0 {
				return problem.Invalidf(command.SeeHelp(c), "--manifests is required")
			}
			return simulateSteps(c, u, "", step)
		},
	}
}

func simulateNodesCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "nodes", Usage: "show where the pending pods would go if there were more nodes",
		Description: "TEMPLATE is the name of a node, or a file with a Node. A copy of a node has its labels, taints and " +
			"resources, and copies of its pods of DaemonSets and its static pods. --until-fits searches the number of nodes.",
		UsageText: command.Examples("pmk-sched simulate nodes --add worker-1=3",
			"pmk-sched simulate nodes --snapshot cluster.tar.gz --add gpu-node.yaml=2 -o json",
			"pmk-sched simulate nodes --until-fits --template worker-1 --template gpu-node.yaml"),
		Flags: simulateFlags(u,
			&cli.StringSliceFlag{Name: "add", Usage: "`TEMPLATE=N`: add N nodes like TEMPLATE"},
			&cli.BoolFlag{Name: "until-fits", Usage: "find out how many nodes like each --template the pending pods need"},
			&cli.StringSliceFlag{Name: "template", Usage: "with --until-fits: `TEMPLATE` of the nodes"},
			&cli.IntFlag{Name: "limit", Value: scenario.DefaultLimit, Usage: "with --until-fits: try at most `NUMBER` of nodes",
				Action: atLeast("limit", 1)},
		),
		Action: func(c *cli.Context) error {
			if c.Bool("until-fits") {
				return simulateUntilFits(c, u)
			}
			if c.IsSet("template") || c.IsSet("limit") {
				return problem.Invalidf("add --until-fits", "--template and --limit need --until-fits")
			}
			step := scenario.Step{Scenario: "nodes"}
			for _, text := range c.StringSlice("add") {
				add, err := scenario.ParseNodesToAdd(text)
				if err != nil {
					return problem.Invalidf("", "invalid --add %w", err)
				}
				step.Add = append(step.Add, add)
			}
			if len(step.Add) == 0 {
				return problem.Invalidf(command.SeeHelp(c), "--add is required")
			}
			return simulateSteps(c, u, "", step)
		},
	}
}

func simulateRunCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "run", ArgsUsage: "FILE", Usage: "run the simulations of a file in sequence",
		Description: "Each step begins with the state after the previous step. The result contains the final node of each " +
			"pod and the result of each step. Paths in the file are relative to the file.",
		UsageText: command.Examples("pmk-sched simulate run scenario.yaml",
			"pmk-sched simulate run --snapshot cluster.tar.gz -o json scenario.yaml"),
		Flags: simulateFlags(u),
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return problem.Invalidf(command.SeeHelp(c), "expected one FILE, got %d arguments", c.NArg())
			}
			name := c.Args().First()
			steps, err := readScenario(name)
			if err != nil {
				return err
			}
			return simulateSteps(c, u, filepath.Dir(name), steps...)
		},
	}
}
