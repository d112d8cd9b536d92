package main

import (
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
)

func credentialsRefreshCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "refresh", Usage: "replace the client certificate of a scheduler by a newer one",
		Description: "Takes the certificate of this control-plane node, which must be newer than the certificate in use, " +
			"checks with the API server that it works, deploys it as a new revision and verifies that the scheduler " +
			"schedules. With --csr the cluster signs a new certificate. The request is approved if you have the permission; " +
			"otherwise the command prints how to approve it and waits. Credentials serviceaccount and hostpath renew " +
			"automatically: the command prints how, and the state of each pod.",
		UsageText: examples("pmk-sched credentials refresh --name my-scheduler",
			"pmk-sched credentials refresh --name my-scheduler --csr"),
		Flags: []cli.Flag{
			nameFlag("scheduler"), fileFlag(),
			&cli.BoolFlag{Name: "csr", Usage: "request a certificate with a CertificateSigningRequest"},
			timeoutFlag(defaultTimeout, "the certificate, and for the scheduler"), stableForFlag(10 * time.Second),
			outputFlag(""),
		},
		Action: func(c *cli.Context) error {
			sp, err := readName(c, u)
			if err != nil {
				return err
			}
			done, err := lifecycle.RefreshCredentials(c.Context, u.session, sp, lifecycle.RefreshOptions{
				Request: c.Bool("csr"), RunOptions: rollout(c),
			})
			if err != nil {
				return err
			}
			if done.Refreshed {
				u.say("scheduler %s uses the new certificate (revision %d), which expires on %s", sp.Name, done.Revision, done.Expires.UTC().Format(time.RFC3339))
			}
			return u.data(c.String("output"), done, refreshText(done))
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
