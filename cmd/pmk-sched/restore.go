package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/replace"
)

func restoreCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "restore", Usage: "restore the default scheduler that was replaced on this node",
		Description: "Restores the original manifest byte by byte, also after an interrupted replacement and while the API " +
			"server is down. Later edits of the files are shown and kept, unless --force is given. With --all-nodes and " +
			"--pod-image it restores all control-plane nodes, one after the other, as replace does.",
		UsageText: command.Examples("pmk-sched restore",
			"pmk-sched restore --force --yes",
			"pmk-sched restore --all-nodes --pod-image registry.example.com/pmk-sched:v1"),
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "force", Usage: "restore even if the files were edited or recreated since"},
			allNodesFlag("restore"), podImageFlag(),
			&cli.StringFlag{Name: "require-signature",
				Usage: "require a signature of the public `KEY`, a PEM file, for the image of --pod-image"},
			yesFlag(), command.OutputFlag(""),
		},
		Action: func(c *cli.Context) error {
			if err := checkAllNodes(c); err != nil {
				return err
			}
			if c.IsSet("require-signature") && c.String("pod-image") == "" {
				return problem.Invalidf("", "--require-signature requires --pod-image")
			}
			if c.Bool("all-nodes") {
				return restoreAll(c, u)
			}
			if _, err := u.Session.Connect(); err != nil {
				return err
			}
			if err := u.Confirm(c.Context, c.Bool("yes"), "restore the original default scheduler of this node"); err != nil {
				return err
			}
			outcome, err := replace.RestoreNode(c.Context, u.Session, c.Bool("force"))
			if err != nil {
				return err
			}
			if outcome.Node == "" {
				u.Say("nothing to restore: the default scheduler of this node is not replaced")
				outcome.Manifest = replace.ManifestUnchanged
			}
			var p printer
			p.Pairs("node", outcome.Node, "manifest", outcome.Manifest, "backup", outcome.Backup)
			return u.Data(c.String("output"), outcome, p.String())
		},
	}
}

func restoreAll(c *cli.Context, u *ui) error {
	key, err := readRequiredKey(c)
	if err != nil {
		return err
	}
	node, err := replace.Restoration(c.Context, u.Session, c.String("pod-image"), key)
	if err != nil {
		return err
	}
	n, force := readNodesCommand(c), c.Bool("force")
	n.question = "restore the original default scheduler of every control-plane node of " + node.Server
	n.plan = node.RestoreCommands
	n.run = func(ctx context.Context, version string) ([]replace.NodeResult, error) {
		return node.RestoreAll(ctx, version, force)
	}
	return n.do(c.Context, u)
}
