package main

import (
	"cmp"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/admission"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/controller"
)

// admissionCommand is hidden: the Deployment that `controller render --admission` prints runs it.
func admissionCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "admission", Usage: "check requests to the API server, from inside the cluster", Hidden: true,
		Subcommands: []*cli.Command{admissionRunCommand(u)},
	}
}

func admissionRunCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "run", Usage: "run the admission webhooks",
		Description: "Routes new pods to schedulers, and refuses bindings for which their node has no room left, " +
			"whichever scheduler made them: one of several replicas decides, and a binding is allowed if none does. " +
			"`controller render --admission` prints what installs it.",
		UsageText: command.Examples("pmk-sched admission run --namespace pmk-sched-system --pod-ip 10.0.0.7",
			"pmk-sched admission run --pod-ip 10.0.0.7 --listen :9443 --metrics-address 0"),
		Flags: []cli.Flag{
			admissionFlag("serve"),
			&cli.StringFlag{Name: "listen", Usage: "`ADDRESS` of the webhooks", Value: ":8443"},
			&cli.StringFlag{Name: "metrics-address", Usage: "`ADDRESS` of /metrics, /healthz and /readyz, 0 for none",
				Value: ":8080"},
			&cli.StringFlag{Name: "pod", Usage: "`NAME` of this replica", Value: "pmk-sched-admission"},
			&cli.StringFlag{Name: "pod-ip", Usage: "`ADDRESS` at which other replicas reach this one (required)"},
			&cli.DurationFlag{Name: "drain", Usage: "answer for `DURATION` after a signal to stop", Value: 3 * time.Second},
		},
		Action: func(c *cli.Context) error {
			o := admission.Options{Namespace: cmp.Or(u.Namespace, controller.DefaultNamespace), Listen: c.String("listen"),
				MetricsAddress: c.String("metrics-address"), Pod: c.String("pod"), PodIP: c.String("pod-ip"),
				DrainTime: c.Duration("drain")}
			var err error
			if o.Parts, err = readAdmission(c); err != nil {
				return err
			}
			if o.PodIP == "" {
				return problem.Invalidf("", "--pod-ip is required")
			}
			return admission.Run(c.Context, u.Session, o)
		},
	}
}
