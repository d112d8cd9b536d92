package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/replace"
)

func restoreCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:  "restore",
		Usage: "bring back the default scheduler that was replaced on this node",
		Description: "The manifest from before the first replacement comes back byte by byte, also after a run that was killed at any\n" +
			"point, and also while the API server is down. What was edited since is shown and kept, unless --force.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "force", Usage: "restore although the files were edited or written anew since"},
			&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask"},
			outputFlag(),
		},
		Action: func(c *cli.Context) error {
			cfg, err := connect(c, u)
			if err != nil {
				return err
			}
			d, err := newReplaceDeps(c, u, cfg)
			if err != nil {
				return err
			}
			if err := u.confirm(c.Context, c.Bool("yes"), "bring back the former default scheduler of this node"); err != nil {
				return err
			}
			outcome, err := replace.Restore(c.Context, d, c.Bool("force"))
			if err != nil {
				return err
			}
			if outcome.Node == "" {
				u.say("nothing to restore: the default scheduler of this node is not replaced")
				outcome.Manifest = replace.ManifestUnchanged
			}
			return u.data(c.String("o"), outcome, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "node\t%s\nmanifest\t%s\nbackup\t%s\n", outcome.Node, outcome.Manifest, outcome.Backup)
				return err
			})
		},
	}
}
