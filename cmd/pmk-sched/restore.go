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
		Usage: "restore the default scheduler that was replaced on this node",
		Description: "Restores the original manifest byte by byte, also after an interrupted replacement and while the API server\n" +
			"is down. Later edits of the files are shown and kept, unless --force is given.",
		UsageText: examples(
			"pmk-sched restore",
			"pmk-sched restore --force --yes",
		),
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "force", Usage: "restore even if the files were edited or recreated since"},
			yesFlag(), outputFlag(""),
		},
		Action: func(c *cli.Context) error {
			if _, err := u.session.Connect(); err != nil {
				return err
			}
			if err := u.confirm(c.Context, c.Bool("yes"), "restore the original default scheduler of this node"); err != nil {
				return err
			}
			outcome, err := u.session.Restore(c.Context, c.Bool("force"))
			if err != nil {
				return err
			}
			if outcome.Node == "" {
				u.say("nothing to restore: the default scheduler of this node is not replaced")
				outcome.Manifest = replace.ManifestUnchanged
			}
			return u.data(c.String("output"), outcome, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "node\t%s\nmanifest\t%s\nbackup\t%s\n", outcome.Node, outcome.Manifest, outcome.Backup)
				return err
			})
		},
	}
}
