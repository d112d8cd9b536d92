package main

import (
	"cmp"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/replace"
	"github.com/pmk-sched/pmk-sched/internal/session"
	"github.com/pmk-sched/pmk-sched/internal/staticpod"
)

func replaceCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:  "replace",
		Usage: "replace the default scheduler of this control-plane node",
		Description: "Run it as root on a control-plane node. The static pod's manifest is backed up, edited in the scheduler's\n" +
			"container only, and swapped with one rename. If the new scheduler does not become ready, lead, bind a pod and\n" +
			"stay ready, the original manifest is restored. On several control-plane nodes run it on one after the other.",
		UsageText: examples(
			"pmk-sched replace --image registry.example.com/kube-scheduler:v1.24.3 --dry-run",
			"pmk-sched replace --preset binpack --yes",
			"pmk-sched replace --image registry.example.com/kube-scheduler:v1.24.3 --all-nodes",
		),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "image", Usage: "`REFERENCE` of the scheduler's image", DefaultText: "the current image"},
			fileFlag(),
			&cli.StringFlag{Name: "preset", Usage: "configuration `PRESET`, see `pmk-sched profile list`"},
			&cli.StringFlag{Name: "config", Usage: "`FILE` with a KubeSchedulerConfiguration of any version", DefaultText: "the current configuration"},
			&cli.BoolFlag{Name: "policy-configmap", Usage: "use a legacy Policy for predicates, priorities and extenders (1.20 to 1.22)"},
			pluginsFlag(),
			&cli.StringFlag{Name: "node", Usage: "`NAME` of this node", DefaultText: "found by its addresses"},
			&cli.BoolFlag{Name: "all-nodes", Usage: "print the command to run on each control-plane node, and whether it is done"},
			&cli.BoolFlag{Name: "dry-run", Usage: "check everything and print how the manifest would change"},
			timeoutFlag(replace.DefaultTimeout, "the new scheduler"),
			stableForFlag(replace.DefaultStableFor),
			&cli.DurationFlag{Name: "steady", Hidden: true, Action: positive("steady")}, // former name of --stable-for
			yesFlag(), outputFlag(""),
		},
		Action: func(c *cli.Context) error {
			sp, err := readSpec(c, u)
			if err != nil {
				return err
			}
			node, err := u.session.Replacement(c.Context, sp, session.ReplaceOptions{
				Node: c.String("node"), Timeout: c.Duration("timeout"), Stable: cmp.Or(c.Duration("steady"), c.Duration("stable-for")),
			}, c.Bool("all-nodes"))
			if err != nil {
				return err
			}
			format := c.String("output")
			switch {
			case c.Bool("all-nodes"):
				plan, err := node.Commands(c.Context, replaceCommandLine(c))
				if err != nil {
					return err
				}
				u.say("run each command on its node, one after the other, and continue only when it has succeeded; patches of one minor may differ meanwhile")
				return u.data(format, plan, nodesTable(plan))
			case c.Bool("dry-run"):
				plan, err := node.Preview(c.Context)
				if err != nil {
					return err
				}
				u.say("dry run: nothing was changed")
				preview := newPreview(plan)
				return u.data(format, preview, writeText(preview.Diff))
			}
			if err := u.confirm(c.Context, c.Bool("yes"), "replace the default scheduler of this node, which serves "+node.Server); err != nil {
				return err
			}
			outcome, err := node.Run(c.Context)
			if err != nil {
				return err
			}
			u.say("the default scheduler of node %s is replaced; verify it with `pmk-sched verify --default`, undo it with `pmk-sched restore`", outcome.Node)
			return u.data(format, outcome, replacedTable(outcome))
		},
	}
}

// replacePreview is what replace --dry-run prints.
type replacePreview struct {
	Node  string `json:"node"`
	Image string `json:"image"`
	// Diff is how the static pod's manifest would change.
	Diff string `json:"diff"`
}

func newPreview(plan *replace.Plan) *replacePreview {
	return &replacePreview{Node: plan.Node, Image: plan.Image, Diff: staticpod.Diff(plan.Old.Data, plan.New.Data)}
}

func replacedTable(o *replace.Outcome) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "node\t%s\nimage\t%s\nbackup\t%s\nleader\t%s\nwithout a scheduler\t%.1f s\n",
			o.Node, o.Image, o.Backup, yesNo(o.Leads), o.SecondsWithout)
		return err
	}
}

func nodesTable(plan []replace.NodePlan) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := fmt.Fprintln(w, "NODE\tDONE\tIMAGE\tCOMMAND")
		for _, n := range plan {
			if err == nil {
				_, err = fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", n.Node, yesNo(n.Done), cmp.Or(n.Image, "-"), n.Command)
			}
		}
		return err
	}
}
