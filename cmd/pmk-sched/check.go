package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/preflight"
)

func checkCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:        "check",
		Usage:       "ask whether the cluster would take the scheduler: permissions, namespace, port",
		Description: "Changes nothing. Exit status 3 when something does not hold.",
		Flags:       append(schedulerFlags(), outputFlag()),
		Action: func(c *cli.Context) error {
			cfg, plan, err := planFromFlags(c, u)
			if err != nil {
				return err
			}
			outcomes, failed := runPreflight(c.Context, u, cfg, plan)
			if outcomes == nil && failed != nil {
				return failed
			}
			if err := u.data(c.String("o"), outcomes, outcomeTable(outcomes)); err != nil {
				return err
			}
			return failed
		},
	}
}

func outcomeTable(outcomes []preflight.Outcome) func(io.Writer) error {
	return func(w io.Writer) error {
		for _, o := range outcomes {
			if _, err := fmt.Fprintf(w, "%s\t%s\t%s\n", o.Status, o.Description, o.Detail); err != nil {
				return err
			}
		}
		return nil
	}
}
