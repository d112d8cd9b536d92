package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/cluster"
	"github.com/pmk-sched/pmk-sched/internal/replace"
)

func statusCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:  "status",
		Usage: "show the schedulers managed by pmk-sched and detect drift",
		Description: "On a control-plane node its files are compared with what was written. The exit status is 3 if a file\n" +
			"differs, if a replacement was interrupted, if a certificate of a scheduler or an extender expires within\n" +
			"30 days, or if the API server does not reach the pods of an extender.",
		UsageText: examples(
			"pmk-sched status",
			"pmk-sched status -o json",
		),
		Flags: []cli.Flag{outputFlag("")},
		Action: func(c *cli.Context) error {
			status, err := u.session.Status(c.Context)
			var finding interface{ CheckFailed() bool }
			if err != nil && !errors.As(err, &finding) {
				return err
			}
			u.warn(status.Unknown...)
			return errors.Join(u.data(c.String("output"), status, statusTable(status)), err)
		},
	}
}

func statusTable(s *replace.Status) func(io.Writer) error {
	return func(w io.Writer) error {
		var err error
		line := func(format string, args ...any) {
			if err == nil {
				_, err = fmt.Fprintf(w, format+"\n", args...)
			}
		}
		line("NODE\tREPLACED\tREADY\tLEADER\tIMAGE")
		for _, n := range s.Nodes {
			line("%s\t%s\t%s\t%s\t%s", n.Node, yesNo(n.Replaced), yesNo(n.Ready), yesNo(n.Leads), n.Image)
		}
		if len(s.Schedulers) > 0 {
			line("\nSCHEDULER\tNAMESPACE\tREADY\tIMAGE\tCERTIFICATE EXPIRES")
		}
		for _, d := range s.Schedulers {
			line("%s\t%s\t%d/%d\t%s\t%s", d.Name, d.Namespace, d.Ready, d.Wanted, d.Image, expiry(d.Certificate))
		}
		if len(s.Extenders) > 0 {
			line("\nEXTENDER\tNAMESPACE\tREADY\tIMAGE\tCERTIFICATE EXPIRES")
		}
		for _, d := range s.Extenders {
			line("%s\t%s\t%d/%d\t%s\t%s", d.Name, d.Namespace, d.Ready, d.Wanted, d.Image, expiry(d.Certificate))
		}
		if h := s.Here; h != nil {
			state := "unchanged"
			if len(h.Drift) > 0 {
				state = "changed since"
			}
			line("\nthis node\t%s, %s since %s, %s\nbackup\t%s", h.Node, h.State, h.Since.Format(time.RFC3339), state, h.Backup)
		}
		return err
	}
}

// expiry is the day on which a certificate expires.
func expiry(c *cluster.MountedCertificate) string {
	if c == nil {
		return "-"
	}
	return c.Expires.Format(time.DateOnly)
}
