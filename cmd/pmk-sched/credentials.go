package main

import (
	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
)

func credentialsCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "credentials", Usage: "show and refresh the credentials of a deployed scheduler",
		Subcommands: []*cli.Command{credentialsShowCommand(u), credentialsRefreshCommand(u)},
	}
}

func credentialsShowCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "show", Usage: "show mode, subject, issuer, expiry and location of the credentials",
		Description: "Keys and tokens are not printed. With credentials hostpath each node has its own file, which is read " +
			"if this is a control-plane node.",
		UsageText: examples("pmk-sched credentials show --name my-scheduler",
			"pmk-sched credentials show --name my-scheduler -o json"),
		Flags: []cli.Flag{nameFlag("scheduler"), fileFlag(), outputFlag("")},
		Action: func(c *cli.Context) error {
			sp, err := readName(c, u)
			if err != nil {
				return err
			}
			report, err := lifecycle.Credentials(c.Context, u.session, sp.Name, sp.Namespace)
			if err != nil {
				return err
			}
			if report.Unknown != "" {
				u.warn("subject and expiry are unknown: " + report.Unknown)
			}
			return u.data(c.String("output"), report, credentialsTable(report))
		},
	}
}

func credentialsTable(r *deploy.CredentialsReport) string {
	expires := ""
	if r.Expires != nil {
		expires = instant(*r.Expires)
	}
	var p printer
	p.pairs("Mode", orDash(r.Mode), "Subject", orDash(r.Subject), "Issuer", orDash(r.Issuer), "Expires", orDash(expires),
		"API server", orDash(r.Server), "Held by", orDash(r.Source),
		"Kubeconfig in the pod", orDash(r.File), "Renewal", orDash(r.Renewal))
	return p.String()
}
