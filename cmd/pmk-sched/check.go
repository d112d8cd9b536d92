package main

import (
	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
	"github.com/pmk-sched/pmk-sched/internal/deploy/preflight"
)

func checkCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "check", Usage: "check whether the cluster accepts the scheduler: permissions, namespace, port",
		Description: "Changes nothing. Known problems of the release that affect the configuration are warnings, with the " +
			"release that fixes them. The exit status is 3 if a check fails.",
		UsageText: command.Examples("pmk-sched check -f pmk-sched.yaml",
			"pmk-sched check --name my-scheduler --image registry.example.com/kube-scheduler:v1.24.3 -o json"),
		Flags: schedulerFlags(
			&cli.StringFlag{Name: "autoscaler",
				Usage: "warn about decisions that differ from `NAME`: cluster-autoscaler or karpenter"},
			command.OutputFlag("")),
		Action: func(c *cli.Context) error {
			autoscaler, err := readAutoscaler(c, "autoscaler")
			if err != nil {
				return err
			}
			sp, err := readSpec(c, u)
			if err != nil {
				return err
			}
			outcomes, failed := lifecycle.Check(c.Context, u.Session, sp, autoscaler)
			if outcomes == nil && failed != nil {
				return failed
			}
			if err := u.Data(c.String("output"), outcomes, outcomeTable(outcomes)); err != nil {
				return err
			}
			return failed
		},
	}
}

func outcomeTable(outcomes []preflight.Outcome) string {
	var p printer
	for _, o := range outcomes {
		p.Row(o.Status, o.Description, o.Detail)
	}
	return p.String()
}
