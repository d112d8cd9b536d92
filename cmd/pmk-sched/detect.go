package main

import (
	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
)

func detectCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "detect", Usage: "inspect the cluster and print what a scheduler for it needs",
		Description: "Prints release, distribution, configuration API, control-plane nodes, the default scheduler and a " +
			"free port; on a control-plane node also the scheduler's own credentials. Known problems of the release are " +
			"printed with the condition under which they matter. Changes nothing. A warning is printed for everything that " +
			"cannot be read.",
		UsageText: examples("pmk-sched detect", "pmk-sched detect --context staging -o json"),
		Flags:     []cli.Flag{nameFlag("scheduler"), outputFlag("")},
		Action: func(c *cli.Context) error {
			sp, err := spec.Read(nameFlags(c, u))
			if err != nil {
				return err
			}
			info, err := lifecycle.Inspect(c.Context, u.session, sp.Name, sp.Namespace)
			if err != nil {
				return err
			}
			return u.data(c.String("output"), info, infoTable(info))
		},
	}
}
