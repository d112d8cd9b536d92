package main

import (
	"errors"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/capture"
)

func recordCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "record", Usage: "write the objects that a scheduler reads and their changes to a file",
		Description: "A snapshot, and afterwards the arrival, binding, completion and deletion of pods, changes of nodes and " +
			"of the other objects that schedulers read, for `simulate replay`. It only watches. Ctrl-C ends it early; the file " +
			"is then complete. Changes nothing on the cluster.",
		UsageText: command.Examples("pmk-sched record --for 24h --archive monday.tar.gz",
			"pmk-sched record --rbac | kubectl apply -f -",
			"pmk-sched record --from openb/ --archive openb.tar.gz"),
		Flags: []cli.Flag{
			&cli.DurationFlag{Name: "for", Value: 24 * time.Hour, Usage: "record for `DURATION`"},
			&cli.StringFlag{Name: "archive", Value: "recording.tar.gz", Usage: "write to `FILE`"},
			&cli.StringSliceFlag{Name: "from",
				Usage: "read a trace with times at `PATH`, such as openb, instead of the cluster; -: standard input"},
			&cli.BoolFlag{Name: "anonymize", Usage: "replace names, labels, images and UIDs"},
			&cli.StringSliceFlag{Name: "resource", Usage: "`PLURAL.GROUP` that a plugin reads, with all its fields"},
			rbacFlag("a recording"),
			command.OutputFlag(""),
		},
		Action: func(c *cli.Context) error { return record(c, u) },
	}
}

func record(c *cli.Context, u *ui) error {
	request := capture.Request{
		From: c.StringSlice("from"), Stdin: u.In, Resources: c.StringSlice("resource"), Anonymize: c.Bool("anonymize"),
		Version: ownVersion(),
	}
	if c.Bool("rbac") {
		return u.printRole(roleFormat(c), snapshot.RecordingRoleName, request.Resources, "list", "watch")
	}
	duration := c.Duration("for")
	switch {
	case duration <= 0:
		return problem.Invalidf("", "invalid --for %s: must be positive", duration)
	case len(request.From) > 0 && c.IsSet("for"):
		return problem.Invalidf("a trace has its own times", "--for cannot be used with --from")
	}
	header, err := capture.Record(c.Context, u.Session, request, duration, c.String("archive"))
	if header == nil {
		return err
	}
	return errors.Join(err, u.Data(c.String("output"), header, recordingTable(header)))
}

func recordingTable(h *snapshot.Header) string {
	var p printer
	p.WriteString(snapshotTable(h))
	r := h.Recording
	p.Line("\nchanges: %d in %s, %d bytes", r.Events, (time.Duration(r.Seconds) * time.Second), r.Bytes)
	p.notes(h.Notes)
	return p.String()
}
