package main

import (
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/page"
	"github.com/pmk-sched/pmk-sched/internal/foresight/replay"
)

// replayTimeout is enough for a long recording on a small machine.
const replayTimeout = 2 * time.Hour

func simulateReplayCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "replay", ArgsUsage: "FILE", Usage: "run a scheduler on a recording, in virtual time",
		Description: "FILE is written by `pmk-sched record`. Pods arrive, finish and are deleted as in the recording; the " +
			"scheduler itself, by default the default scheduler, decides where they run. Prints utilization, waiting, " +
			"evictions and costs, next to those of the recording. No cluster is used.",
		UsageText: command.Examples("pmk-sched simulate replay --report monday.html monday.tar.gz",
			"pmk-sched simulate replay --with-scheduler new.yaml --price m5.large=0.096 monday.tar.gz",
			"pmk-sched simulate replay --preset binpack --branch v1.24.3 --step 1h openb.tar.gz"),
		Flags: replayFlags(u),
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return problem.Invalidf(command.SeeHelp(c), "expected one FILE, got %d arguments", c.NArg())
			}
			r := replay.Request{File: c.Args().First(), Step: c.Duration("step"), Timeout: c.Duration("timeout")}
			if r.Step < 0 {
				return problem.Invalidf("", "invalid --step %s: must be positive", r.Step)
			}
			var err error
			if r.Prices, err = readPrices(c); err != nil {
				return err
			}
			if r.Scheduler, err = simulatedScheduler(c, u, false); err != nil {
				return err
			}
			result, err := withReport(c.Context, c.String("report"), page.WriteReplay, func() (*replay.Result, error) {
				return replay.Run(c.Context, u.Session, r)
			})
			if err != nil {
				return err
			}
			return u.Conclude(c.String("output"), result, replayTable(result), "", checkNext)
		},
	}
}

func replayFlags(u *ui) []cli.Flag {
	flags := localSchedulerFlags("the recording's",
		&cli.DurationFlag{Name: "step", DefaultText: "a minute for each day of the recording",
			Usage: "apply changes within `DURATION` together"},
		&cli.StringSliceFlag{Name: "price", Usage: "`TYPE=PRICE` of a node, as in `simulate pending`: adds costs"},
		&cli.StringFlag{Name: "report", Usage: "write the result to `FILE` as a web page"},
		unknownReleaseFlag(u),
		timeoutFlag(replayTimeout, "the whole replay"), command.OutputFlag(""),
	)
	for _, f := range flags {
		if file, ok := f.(*cli.StringFlag); ok && file.Name == "file" {
			file.Aliases = append(file.Aliases, "with-scheduler")
		}
	}
	return flags
}

func replayTable(r *replay.Result) string {
	var p printer
	duration := time.Duration(r.Seconds * float64(time.Second)).Round(time.Second)
	p.Line("%s %s on a recording of %s, in %s of at most %s\n", r.Scheduler, r.Release, duration,
		plural.Count(r.Groups, "group"), time.Duration(r.StepSeconds*float64(time.Second)).Round(time.Millisecond))
	p.Row("", "REPLAY", "RECORDING")
	for _, f := range r.Figures() {
		p.Row(f.Name, f.Replayed, f.Recorded)
	}
	p.Line("\nnodes of pods: %d as recorded, %s", r.SameNode, plural.Count(r.OtherNode, "other"))
	p.Head(len(r.Evicted), "EVICTED POD", "NODE", "FOR", "AT")
	for _, e := range first(r.Evicted) {
		p.Row(e.Namespace+"/"+e.Name, e.Node, orDash(e.By), replay.Elapsed(e.Seconds))
	}
	p.more(len(r.Evicted))
	p.Head(len(r.Lost), "POD OF A REMOVED NODE", "NODE", "AT")
	for _, e := range first(r.Lost) {
		p.Row(e.Namespace+"/"+e.Name, e.Node, replay.Elapsed(e.Seconds))
	}
	p.more(len(r.Lost))
	p.Head(len(r.Unplaced), "WAITS IN THE END", "SINCE", "REASON")
	for _, w := range first(r.Unplaced) {
		p.Row(w.Namespace+"/"+w.Name, replay.Elapsed(w.Since), orDash(oneLine(w.Reason)))
	}
	p.more(len(r.Unplaced))
	p.notes(r.Notes)
	p.unknown(r.Unknown)
	return p.String()
}
