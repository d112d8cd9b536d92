package main

import (
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
)

func historyCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "history", Usage: "show the revisions of a scheduler or an extender",
		Description: "Each deployment that changes an object is a revision. The last ten revisions are kept. -o json " +
			"contains the full reason of a failure.",
		UsageText: command.Examples("pmk-sched history --name my-scheduler", "pmk-sched history -f pmk-sched.yaml -o json"),
		Flags:     []cli.Flag{nameFlag("scheduler"), fileFlag(), command.OutputFlag("")},
		Action: func(c *cli.Context) error {
			sp, err := readName(c, u)
			if err != nil {
				return err
			}
			entries, err := lifecycle.History(c.Context, u.Session, sp)
			if err != nil {
				return err
			}
			return u.Data(c.String("output"), entries, historyTable(entries))
		},
	}
}

func historyTable(entries []deploy.HistoryEntry) string {
	var p printer
	p.Row("REVISION", "TIME", "BY", "STATUS", "RELEASE", "IMAGE", "CONFIGURATION", "PLUGINS", "REASON")
	for _, e := range entries {
		image := shortReference(e.Image + prefixed("@", e.Digest))
		p.Row(e.Revision, e.Time.UTC().Format(time.RFC3339), orDash(e.By), revisionStatus(e), orDash(e.Release),
			orDash(image),
			orDash(e.Configuration), orDash(strings.Join(e.Plugins, ",")), orDash(shortReason(e)))
	}
	return p.String()
}

func revisionStatus(e deploy.HistoryEntry) string {
	if e.Current && e.Status == apply.Deployed {
		return "current"
	}
	return string(e.Status)
}

// maxReason is the longest reason that fits into a table, in characters.
const maxReason = 80

// shortReason returns the beginning of the reason why a revision failed, or its origin.
func shortReason(e deploy.HistoryEntry) string {
	reason, more, _ := strings.Cut(strings.TrimSpace(e.Reason), "\n")
	if text := []rune(reason); len(text) > maxReason {
		reason, more = string(text[:maxReason]), "more"
	}
	if more != "" {
		reason += " …"
	}
	return joinNonEmpty(e.Origin, strings.ReplaceAll(reason, "\t", " "))
}
