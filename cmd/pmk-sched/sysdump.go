package main

import (
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
	"github.com/pmk-sched/pmk-sched/internal/replace"
)

func sysdumpCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "sysdump", Usage: "collect the data for a bug report in an archive, without secrets",
		Description: "Collects objects, revisions, events, logs, metrics, configuration, versions and facts about the " +
			"nodes, of all schedulers and extenders or of --name. Data of Secrets, private keys, tokens, passwords, " +
			"environment variables and copies of objects in annotations are removed. errors.txt in the archive lists failed " +
			"reads. Changes nothing on the cluster. Read the archive before you publish it.",
		UsageText: command.Examples("pmk-sched sysdump", "pmk-sched sysdump --name my-scheduler --archive bug.tar.gz"),
		Flags: []cli.Flag{
			nameFlag("scheduler or extender"),
			&cli.StringFlag{Name: "archive", Usage: "write to `FILE`", DefaultText: "pmk-sched-sysdump-TIME.tar.gz"},
			command.OutputFlag("archive"),
		},
		Action: func(c *cli.Context) error {
			sp, err := spec.Read(nameFlags(c, u))
			if err != nil {
				return err
			}
			file := c.String("archive")
			if file == "" {
				file = "pmk-sched-sysdump-" + time.Now().UTC().Format("20060102T150405Z") + ".tar.gz"
			}
			summary, err := replace.Sysdump(c.Context, u.Session, sp, file, ownVersion())
			if err != nil {
				return err
			}
			for _, unread := range summary.Errors {
				u.Warn(oneLine(unread))
			}
			return u.Data(c.String("output"), summary,
				fmt.Sprintf("%s: %s, %d bytes uncompressed\n", summary.Archive, plural.Count(summary.Files, "file"),
					summary.Bytes))
		},
	}
}
