package main

import (
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/page"
	"github.com/pmk-sched/pmk-sched/internal/foresight/replay"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
)

// replayTimeout is enough for a long recording on a small machine.
const replayTimeout = 2 * time.Hour

func simulateReplayCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "replay", ArgsUsage: "FILE", Usage: "run a scheduler on a recording, in virtual time",
		Description: "FILE is written by `pmk-sched record`. Pods arrive, finish and are deleted as in the recording; the " +
			"scheduler itself, by default the default scheduler, decides where they run. Prints utilization, waiting, " +
			"evictions and costs, next to those of the recording. No cluster is used.",
		UsageText: examples("pmk-sched simulate replay --report monday.html monday.tar.gz",
			"pmk-sched simulate replay --with-scheduler new.yaml --price m5.large=0.096 monday.tar.gz",
			"pmk-sched simulate replay --preset binpack --branch v1.24.3 --step 1h openb.tar.gz"),
		Flags: replayFlags(u),
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return problem.Invalidf(seeHelp(c), "expected one FILE, got %d arguments", c.NArg())
			}
			r := simulate.ReplayRequest{File: c.Args().First(), Step: c.Duration("step"), Timeout: c.Duration("timeout")}
			if r.Step < 0 {
				return problem.Invalidf("", "invalid --step %s: must be positive", r.Step)
			}
			var err error
			if r.Prices, err = readPrices(c); err != nil {
				return err
			}
			if r.Scheduler, err = simulatedScheduler(c, u); err != nil {
				return err
			}
			result, err := withReport(c.Context, c.String("report"), page.WriteReplay, func() (*replay.Result, error) {
				return simulate.Replay(c.Context, u.session, r)
			})
			if err != nil {
				return err
			}
			return u.data(c.String("output"), result, replayTable(result))
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
		timeoutFlag(replayTimeout, "the whole replay"), outputFlag(""),
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
	p.line("%s %s on a recording of %s, in %d groups of at most %s\n", r.Scheduler, r.Release, duration, r.Groups,
		time.Duration(r.StepSeconds*float64(time.Second)).Round(time.Millisecond))
	replayed, recorded := &r.Replayed, &r.Recorded
	p.row("", "REPLAY", "RECORDING")
	count := func(name string, a, b int) { p.row(name, a, b) }
	count("pods arrived", replayed.Arrived, recorded.Arrived)
	count("pods placed", replayed.Placed, recorded.Placed)
	count("pods ended", replayed.Ended, recorded.Ended)
	count("pods evicted", replayed.Evicted, recorded.Evicted)
	count("most waiting", replayed.MostWaiting, recorded.MostWaiting)
	wait := func(name string, a, b float64) { p.row(name, elapsed(a), elapsed(b)) }
	wait("wait, mean", replayed.Waiting.Mean, recorded.Waiting.Mean)
	wait("wait, p50", replayed.Waiting.P50, recorded.Waiting.P50)
	wait("wait, p99", replayed.Waiting.P99, recorded.Waiting.P99)
	wait("wait, longest", replayed.Waiting.Max, recorded.Waiting.Max)
	for _, resource := range replayed.Mean.Resources() {
		p.row(resource+", mean", percent(replayed.Mean.Utilization[resource]), percent(recorded.Mean.Utilization[resource]))
	}
	if replayed.Mean.Cost > 0 {
		p.row("cost of nodes, mean", report.FormatPrice(replayed.Mean.Cost), report.FormatPrice(recorded.Mean.Cost))
		p.row("of empty nodes, mean", report.FormatPrice(replayed.Mean.EmptyCost),
			report.FormatPrice(recorded.Mean.EmptyCost))
	}
	p.line("\nnodes of pods: %d as recorded, %d others", r.SameNode, r.OtherNode)
	p.head(len(r.Evicted), "EVICTED POD", "NODE", "FOR", "AT")
	for _, e := range first(r.Evicted) {
		p.row(e.Namespace+"/"+e.Name, e.Node, orDash(e.By), elapsed(e.Seconds))
	}
	p.more(len(r.Evicted))
	p.head(len(r.Lost), "POD OF A REMOVED NODE", "NODE", "AT")
	for _, e := range first(r.Lost) {
		p.row(e.Namespace+"/"+e.Name, e.Node, elapsed(e.Seconds))
	}
	p.more(len(r.Lost))
	p.head(len(r.Unplaced), "WAITS IN THE END", "SINCE", "REASON")
	for _, w := range first(r.Unplaced) {
		p.row(w.Namespace+"/"+w.Name, elapsed(w.Since), orDash(oneLine(w.Reason)))
	}
	p.more(len(r.Unplaced))
	p.notes(r.Notes)
	p.unknown(r.Unknown)
	return p.String()
}

// elapsed formats a time.
func elapsed(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(100 * time.Millisecond).String()
}

func percent(part float64) string { return fmt.Sprintf("%.1f %%", 100*part) }
