package main

import (
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
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
		UsageText: command.Examples("pmk-sched credentials show --name my-scheduler",
			"pmk-sched credentials show --name my-scheduler -o json"),
		Flags: []cli.Flag{nameFlag("scheduler"), fileFlag(), command.OutputFlag("")},
		Action: func(c *cli.Context) error {
			sp, err := readName(c, u)
			if err != nil {
				return err
			}
			report, err := lifecycle.Credentials(c.Context, u.Session, sp.Name, sp.Namespace)
			if err != nil {
				return err
			}
			if report.Unknown != "" {
				u.Warn("subject and expiry are unknown: " + report.Unknown)
			}
			return u.Data(c.String("output"), report, credentialsTable(report))
		},
	}
}

func credentialsTable(r *deploy.CredentialsReport) string {
	expires := ""
	if r.Expires != nil {
		expires = instant(*r.Expires)
	}
	var p printer
	p.Pairs("Mode", orDash(r.Mode), "Subject", orDash(r.Subject), "Issuer", orDash(r.Issuer), "Expires", orDash(expires),
		"API server", orDash(r.Server), "Held by", orDash(r.Source),
		"Kubeconfig in the pod", orDash(r.File), "Renewal", orDash(r.Renewal))
	return p.String()
}

func credentialsRefreshCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "refresh", Usage: "replace the client certificate of a scheduler by a newer one",
		Description: "Takes the certificate of this control-plane node, which must be newer than the certificate in use, " +
			"checks with the API server that it works, deploys it as a new revision and verifies that the scheduler " +
			"schedules. With --csr the cluster signs a new certificate. The request is approved if you have the permission; " +
			"otherwise the command prints how to approve it and waits. Credentials serviceaccount and hostpath renew " +
			"automatically: the command prints how, and the state of each pod.",
		UsageText: command.Examples("pmk-sched credentials refresh --name my-scheduler",
			"pmk-sched credentials refresh --name my-scheduler --csr"),
		Flags: []cli.Flag{
			nameFlag("scheduler"), fileFlag(),
			&cli.BoolFlag{Name: "csr", Usage: "request a certificate with a CertificateSigningRequest"},
			timeoutFlag(defaultTimeout, "the certificate, and for the scheduler"), stableForFlag(10 * time.Second),
			command.OutputFlag(""),
		},
		Action: func(c *cli.Context) error {
			sp, err := readName(c, u)
			if err != nil {
				return err
			}
			done, err := lifecycle.RefreshCredentials(c.Context, u.Session, sp, lifecycle.RefreshOptions{
				Request: c.Bool("csr"), RunOptions: runOptions(c),
			})
			if err != nil {
				return err
			}
			if done.Refreshed {
				u.Say("scheduler %s uses the new certificate (revision %d), which expires on %s",
					sp.Name, done.Revision, done.Expires.UTC().Format(time.RFC3339))
			}
			return u.Data(c.String("output"), done, refreshText(done))
		},
	}
}

// refreshText returns the changes, or why nothing was changed.
func refreshText(r *lifecycle.Refresh) string {
	if r.Refreshed {
		return r.Changes.String()
	}
	lines := []string{"nothing to refresh: credentials " + r.Mode}
	if r.Renewal != "" {
		lines[0] += " are renewed automatically: " + r.Renewal
	}
	if r.Expires != nil {
		lines = append(lines, "certificate expires on "+r.Expires.UTC().Format(time.RFC3339))
	}
	return strings.Join(append(lines, r.Seen...), "\n") + "\n"
}
