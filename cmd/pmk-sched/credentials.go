package main

import (
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
)

func credentialsCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:        "credentials",
		Usage:       "show and refresh the credentials of a deployed scheduler",
		Subcommands: []*cli.Command{credentialsShowCommand(u), credentialsRefreshCommand(u)},
	}
}

func credentialsShowCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:  "show",
		Usage: "show mode, subject, issuer, expiry and location of the credentials",
		Description: "Keys and tokens are not printed. With credentials hostpath each node has\n" +
			"its own file, which is read if this is a control-plane node.",
		UsageText: examples(
			"pmk-sched credentials show --name my-scheduler",
			"pmk-sched credentials show --name my-scheduler -o json",
		),
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

func credentialsTable(r *deploy.CredentialsReport) func(io.Writer) error {
	return func(w io.Writer) error {
		expires := ""
		if r.Expires != nil {
			expires = r.Expires.UTC().Format(time.RFC3339)
		}
		for _, fact := range [][2]string{
			{"Mode", r.Mode}, {"Subject", r.Subject}, {"Issuer", r.Issuer}, {"Expires", expires}, {"API server", r.Server},
			{"Held by", r.Source}, {"Kubeconfig in the pod", r.File}, {"Renewal", r.Renewal},
		} {
			if _, err := fmt.Fprintf(w, "%s\t%s\n", fact[0], orDash(fact[1])); err != nil {
				return err
			}
		}
		return nil
	}
}
