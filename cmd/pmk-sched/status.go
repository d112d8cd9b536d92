package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/replace"
)

func statusCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:  "status",
		Usage: "tell which schedulers are ours, and whether they are as they were left",
		Description: "On a control-plane node its files are compared with what was written. Exit status 3 when something differs,\n" +
			"which is shown, or when a replacement was not finished.",
		Flags: []cli.Flag{outputFlag()},
		Action: func(c *cli.Context) error {
			cfg, err := connect(c, u)
			if err != nil {
				return err
			}
			d, err := newReplaceDeps(c, u, cfg)
			if err != nil {
				return err
			}
			root, err := nodeRoot(c)
			if err != nil {
				return err
			}
			status, err := replace.ReadStatus(c.Context, d, root != "")
			var drift *replace.DriftError
			if err != nil && !errors.As(err, &drift) {
				return err
			}
			u.warn(status.Unknown...)
			return errors.Join(u.data(c.String("o"), status, replacementTable(status)), err)
		},
	}
}

func replacementTable(s *replace.Status) func(io.Writer) error {
	return func(w io.Writer) error {
		var err error
		line := func(format string, args ...any) {
			if err == nil {
				_, err = fmt.Fprintf(w, format+"\n", args...)
			}
		}
		line("NODE\tREPLACED\tREADY\tLEADS\tIMAGE")
		for _, n := range s.Nodes {
			line("%s\t%s\t%s\t%s\t%s", n.Node, yesNo(n.Replaced), yesNo(n.Ready), yesNo(n.Leads), n.Image)
		}
		if len(s.Schedulers) > 0 {
			line("\nSCHEDULER\tNAMESPACE\tREADY\tIMAGE")
		}
		for _, d := range s.Schedulers {
			line("%s\t%s\t%d/%d\t%s", d.Name, d.Namespace, d.Ready, d.Wanted, d.Image)
		}
		if len(s.Extenders) > 0 {
			line("\nEXTENDER\tNAMESPACE\tREADY\tIMAGE")
		}
		for _, d := range s.Extenders {
			line("%s\t%s\t%d/%d\t%s", d.Name, d.Namespace, d.Ready, d.Wanted, d.Image)
		}
		if h := s.Here; h != nil {
			as := "as it was left"
			if len(h.Drift) > 0 {
				as = "changed since"
			}
			line("\nthis node\t%s, %s since %s, %s\nbackup\t%s", h.Node, h.State, h.Since.Format(time.RFC3339), as, h.Backup)
		}
		return err
	}
}
