package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/replace"
)

func replaceCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "replace", Usage: "replace the default scheduler of this control-plane node",
		Description: "Run it as root on a control-plane node. The static pod's manifest is backed up, edited in the " +
			"scheduler's container only, and swapped with one rename. If the new scheduler does not become ready, lead, bind " +
			"a pod and stay ready, the original manifest is restored.\n\n" +
			"With --all-nodes it prints the command for each control-plane node. With --pod-image it also runs the command, " +
			"on one node after the other, in a privileged pod that is deleted afterwards. It stops at the first failure; the " +
			"same command resumes.",
		UsageText: command.Examples("pmk-sched replace --image registry.example.com/kube-scheduler:v1.24.3 --dry-run",
			"pmk-sched replace --preset binpack --yes",
			"pmk-sched replace --preset binpack --all-nodes --pod-image registry.example.com/pmk-sched:v1"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "image", Usage: "`REFERENCE` of the scheduler's image", DefaultText: "the current image"},
			fileFlag(),
			&cli.StringFlag{Name: "preset", Usage: "configuration `PRESET`, see `pmk-sched profile list`"},
			&cli.StringFlag{Name: "config", Usage: "`FILE` with a KubeSchedulerConfiguration of any version",
				DefaultText: "the current configuration"},
			&cli.BoolFlag{Name: "policy-configmap",
				Usage: "use a legacy Policy for predicates, priorities and extenders (1.20 to 1.22)"},
			pluginsFlag(), requireSignatureFlag(),
			&cli.StringFlag{Name: "node", Usage: "`NAME` of this node", DefaultText: "found by its addresses"},
			allNodesFlag("replace"), podImageFlag(),
			&cli.BoolFlag{Name: "dry-run", Usage: "run all checks and print the changes of the manifest without making them"},
			timeoutFlag(replace.DefaultTimeout, "the new scheduler"), stableForFlag(replace.DefaultStableFor),
			yesFlag(), command.OutputFlag(""),
		},
		Action: func(c *cli.Context) error {
			if err := checkAllNodes(c); err != nil {
				return err
			}
			sp, err := readSpec(c, u)
			if err != nil {
				return err
			}
			node, err := replace.Replacement(c.Context, u.Session, sp, replace.NodeOptions{
				Node: c.String("node"), Timeout: c.Duration("timeout"), Stable: c.Duration("stable-for"),
				AllNodes: c.Bool("all-nodes"), PodImage: c.String("pod-image"),
			})
			if err != nil {
				return err
			}
			format := c.String("output")
			switch {
			case c.Bool("all-nodes"):
				n := readNodesCommand(c)
				n.question = "replace the default scheduler of every control-plane node of " + node.Server
				n.plan, n.run = node.Commands, node.RunAll
				return n.do(c.Context, u)
			case c.Bool("dry-run"):
				plan, err := node.Preview(c.Context)
				if err != nil {
					return err
				}
				u.Say("dry run: nothing was changed")
				preview := newPreview(plan)
				return u.Data(format, preview, preview.Diff)
			}
			if err := u.Confirm(c.Context, c.Bool("yes"),
				"replace the default scheduler of this node, which serves "+node.Server); err != nil {
				return err
			}
			outcome, err := node.Run(c.Context)
			if err != nil {
				return err
			}
			return u.Conclude(format, outcome, replacedTable(outcome),
				fmt.Sprintf("the default scheduler of node %s is replaced", outcome.Node),
				"`pmk-sched verify --default`; undo it with `pmk-sched restore`")
		},
	}
}
