package main

import (
	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
)

func simulateCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "simulate", Usage: "simulate a scheduler on a copy of the cluster's objects",
		Description: "Runs the scheduler itself on an API server without nodes. The cluster is only read. With --snapshot " +
			"no cluster is used.",
		Subcommands: []*cli.Command{
			simulateStepCommand(u, cli.Command{
				Name: "pending", Usage: "show where the pending pods would go, or why not",
				Description: "The scheduler gets the pending pods in the order of its queue: by priority, then by age. It may " +
					"evict pods, which are listed.",
				UsageText: command.Examples("pmk-sched simulate pending",
					"pmk-sched simulate pending --snapshot cluster.tar.gz --preset binpack -o json"),
			}),
			simulateStepCommand(u, cli.Command{
				Name: "replace-all", Usage: "show where all pods would go if they were scheduled again",
				Description: "Schedules all movable and pending pods, by priority, then by age, on nodes that have only the " +
					"pods of DaemonSets, static pods and pods that are being deleted.",
				UsageText: command.Examples("pmk-sched simulate replace-all --snapshot cluster.tar.gz --preset binpack",
					"pmk-sched simulate replace-all --branch v1.29.3 --config scheduler.yaml -o json"),
			}),
			simulateStepCommand(u, cli.Command{
				Name: "drain", ArgsUsage: "NODE...", Usage: "show where the pods of drained nodes would go",
				UsageText: command.Examples("pmk-sched simulate drain worker-7",
					"pmk-sched simulate drain --snapshot cluster.tar.gz -o json worker-7 worker-8"),
			}),
			simulateAddCommand(u), simulateNodesCommand(u), simulateRunCommand(u), simulateMatrixCommand(u),
			simulatePreemptionsCommand(u), simulateReplayCommand(u), simulateUpgradeCommand(u),
		},
	}
}

// simulateStepCommand completes a command that runs the step with its name, on the nodes that its
// arguments name.
func simulateStepCommand(u *ui, cmd cli.Command) *cli.Command {
	cmd.Flags = simulateFlags(u)
	takesNodes := cmd.ArgsUsage != ""
	cmd.Action = func(c *cli.Context) error {
		step := scenario.Step{Scenario: cmd.Name}
		if takesNodes {
			if err := command.CheckList(c); err != nil {
				return err
			}
			step.Nodes = c.Args().Slice()
		}
		return simulateSteps(c, u, "", step)
	}
	return &cmd
}
