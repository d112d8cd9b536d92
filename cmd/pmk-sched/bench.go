package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/bench"
	"github.com/pmk-sched/pmk-sched/internal/foresight/bench/upstream"
)

// benchTimeout is enough for 10,000 pods on a small machine.
const benchTimeout = 15 * time.Minute

func benchCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "bench", Usage: "measure how many pods per second a scheduler binds, compared with other schedulers",
		Description: "The schedulers run on API servers without nodes, with the nodes of the cluster or of a snapshot, or " +
			"with --nodes identical nodes. All pods exist before a scheduler starts. The samples are taken in turn, and the " +
			"medians are compared. The cluster is only read.\n\n" +
			"--upstream runs Kubernetes' own benchmark scheduler_perf instead (from 1.30 on), with its thresholds. It applies " +
			"profiles and plugins; flags and extenders are refused.\n\n" +
			"Exit status 3: the rate is below the limit of --fail-below, compared with any other scheduler, or only this " +
			"scheduler misses a threshold.",
		UsageText: command.Examples("pmk-sched bench --preset throughput --against default --against pmk-sched.yaml",
			"pmk-sched bench --nodes 5000 --pods 2000 --branch v1.24.3 -f pmk-sched.yaml --fail-below 0.9",
			"pmk-sched bench --upstream integration-test --branch v1.34.2 --with builtin:gpupacking"),
		Flags: simulatedFlags(
			&cli.StringSliceFlag{Name: "against", Value: cli.NewStringSlice(defaultBaseline),
				Usage: "compare with the scheduler of `FILE`, a pmk-sched.yaml, or default: the default scheduler"},
			&cli.IntFlag{Name: "nodes", Usage: "`NUMBER` of identical nodes", DefaultText: "the nodes of the snapshot",
				Action: atLeast("nodes", 1)},
			&cli.IntFlag{Name: "pods", Value: 1000, Usage: "`NUMBER` of pods to schedule", Action: atLeast("pods", 2)},
			&cli.StringFlag{Name: "upstream", Usage: "run the workloads of scheduler_perf with `LABELS`, such as " +
				"integration-test or performance,-short"},
			&cli.IntFlag{Name: "samples", Value: 3, Usage: "`NUMBER` of measurements of each scheduler",
				Action: atLeast("samples", 1)},
			&cli.Float64Flag{Name: "fail-below",
				Usage: "exit with 3 if the rate is below `RATIO` times the rate of another scheduler"},
			timeoutFlag(benchTimeout, "one measurement"), command.OutputFlag(""),
		),
		Action: func(c *cli.Context) error { return runBench(c, u) },
	}
}

func runBench(c *cli.Context, u *ui) error {
	err := cmp.Or(exclude(c, command.SeeHelp(c), "nodes", "snapshot"),
		exclude(c, command.SeeHelp(c), "upstream", "snapshot", "nodes", "pods"))
	if err != nil {
		return err
	}
	least := c.Float64("fail-below")
	if least < 0 {
		return problem.Invalidf("", "invalid --fail-below %v: must be above 0", least)
	}
	if c.IsSet("upstream") && c.String("upstream") == "" {
		return problem.Invalidf("for example integration-test", "invalid --upstream %q: no labels", "")
	}
	against := c.StringSlice("against")
	if slices.Contains(against, "") {
		return problem.Invalidf("", "invalid --against %q: must be a file or %s", "", defaultBaseline)
	}
	in, err := readInput(c, u, against...)
	if err != nil {
		return err
	}
	if labels := c.String("upstream"); labels != "" {
		return runUpstream(c, u, upstream.Request{Input: in, Labels: labels, Samples: c.Int("samples")})
	}
	result, err := bench.Run(c.Context, u.Session, bench.Request{
		Input: in, Nodes: c.Int("nodes"), Pods: c.Int("pods"), Samples: c.Int("samples"),
	})
	if err != nil {
		return err
	}
	u.Warn(result.Notes...)
	if err := u.Data(c.String("output"), result, benchTable(result)); err != nil {
		return err
	}
	for _, s := range result.Against {
		if s.Ratio < least {
			return command.CheckFailed("the scheduler binds %.2f times the pods per second of %s, less than %v%s", s.Ratio,
				s.Source, least, slowest(result.This))
		}
	}
	return nil
}

// runUpstream runs scheduler_perf.
func runUpstream(c *cli.Context, u *ui, request upstream.Request) error {
	result, err := upstream.Run(c.Context, u.Session, request)
	if err != nil {
		return err
	}
	u.Warn(result.Notes...)
	if err := u.Data(c.String("output"), result, upstreamTable(result)); err != nil {
		return err
	}
	if misses := result.Misses(c.Float64("fail-below")); len(misses) > 0 {
		return command.CheckFailed("%s", strings.Join(misses, "\n"))
	}
	return nil
}

// upstreamTable prints each workload with a line for each scheduler.
func upstreamTable(r *upstream.Result) string {
	var p printer
	p.Line("scheduler_perf of %s, labels %s: %d samples of each scheduler, in turn", r.Release, r.Labels, r.Samples)
	p.Head(len(r.Workloads), "WORKLOAD", "SCHEDULER", "PODS/S", "SAMPLES", "RATIO", "THRESHOLD", "RESULT")
	for _, w := range r.Workloads {
		threshold := "-"
		if t := w.Threshold; t != nil {
			threshold = fmt.Sprintf("%g", t.Value)
			if t.Metric != upstream.Throughput {
				threshold = t.Metric + " " + threshold
			}
		}
		for i, s := range append([]upstream.Side{w.This}, w.Against...) {
			rate, ratio := "-", "-"
			if s.Rate > 0 {
				rate = fmt.Sprintf("%.1f", s.Rate)
			}
			if i > 0 && s.Ratio > 0 {
				ratio = fmt.Sprintf("%.2f", s.Ratio)
			}
			rates := cmp.Or(joined(s.Rates, ", ", func(rate float64) string { return fmt.Sprintf("%.1f", rate) }), "-")
			p.Line("%s\t%s\t%s\t%s\t%s\t%s\t%s", w.Name, s.Source, rate, rates, ratio, threshold,
				strings.TrimSuffix(s.Result+": "+s.Reason, ": "))
		}
	}
	return p.String()
}

func slowest(s bench.Side) string {
	if len(s.Plugins) == 0 {
		return ""
	}
	p := s.Plugins[0]
	return fmt.Sprintf("; its slowest plugin is %s at %s: %.0f µs for each call", p.Plugin, p.Point,
		p.MicrosecondsPerCall)
}

// benchTable prints the schedulers, and the time that the first scheduler spends in its plugins and
// extension points.
func benchTable(r *bench.Result) string {
	var p printer
	p.Line("%s: %s on %s, all created before the scheduler starts; %s of each scheduler, in turn", r.Workload,
		plural.Count(r.Pods, "pod"), plural.Count(r.Nodes, "node"), plural.Count(r.Samples, "sample"))
	sides := r.Sides()
	p.Head(len(sides), "SCHEDULER", "NAME", "RELEASE", "PODS/S", "SAMPLES", "ATTEMPT (MEDIAN)", "ATTEMPT (P99)")
	for _, s := range sides {
		rates := joined(s.Rates, ", ", func(rate float64) string { return fmt.Sprintf("%.1f", rate) })
		p.Line("%s\t%s\t%s\t%.1f\t%s\t%.2f ms\t%.2f ms",
			s.Source, s.Scheduler, s.Release, s.Rate, rates, s.Attempt.P50, s.Attempt.P99)
	}
	p.Row()
	header := []any{"SLOWEST PLUGIN", "EXTENSION POINT", "TIME PER CALL", "TIME PER POD"}
	for _, s := range r.Against {
		p.Line("%.2f times the pods per second of %s", s.Ratio, s.Source)
		header = append(header, "PER POD, "+s.Source)
	}
	p.Head(len(r.This.Plugins), header...)
	for _, t := range r.This.Plugins[:min(mostBest, len(r.This.Plugins))] {
		perCall, perPod := fmt.Sprintf("%.1f µs", t.MicrosecondsPerCall), fmt.Sprintf("%.3f ms", t.MillisecondsPerPod)
		row := []any{t.Plugin, t.Point, perCall, perPod}
		for _, s := range r.Against {
			row = append(row, timeOf(s, t))
		}
		p.Row(row...)
	}
	p.Head(len(r.This.Points), "EXTENSION POINT", "TIME PER POD")
	for _, t := range r.This.Points {
		p.Line("%s\t%.3f ms", t.Point, t.MillisecondsPer)
	}
	return p.String()
}

func timeOf(s bench.Side, t bench.PluginTime) string {
	for _, other := range s.Plugins {
		if other.Plugin == t.Plugin && other.Point == t.Point {
			return fmt.Sprintf("%.3f ms", other.MillisecondsPerPod)
		}
	}
	return "-"
}
