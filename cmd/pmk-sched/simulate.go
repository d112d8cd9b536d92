package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/problem"
	"github.com/pmk-sched/pmk-sched/internal/session"
	"github.com/pmk-sched/pmk-sched/internal/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/spec"
)

// simulateTimeout is enough for 20,000 pods on a small machine.
const simulateTimeout = 30 * time.Minute

func simulateCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:        "simulate",
		Usage:       "show what a scheduler would do, on a copy of the cluster's objects",
		Description: "Runs the scheduler itself on an API server without nodes. The cluster is only read, or not at all with --snapshot.",
		Subcommands: []*cli.Command{simulatePendingCommand(u), simulateReplaceAllCommand(u), simulateDrainCommand(u)},
	}
}

func simulatePendingCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:  "pending",
		Usage: "show where the pending pods would go, or why not",
		Description: "The scheduler gets the pending pods in the order of its queue: by priority, then by age. It may evict pods, which\n" +
			"are listed.",
		UsageText: examples(
			"pmk-sched simulate pending",
			"pmk-sched simulate pending --snapshot cluster.tar.gz --preset binpack -o json",
		),
		Flags: simulateFlags(),
		Action: func(c *cli.Context) error {
			return simulateScenario(c, u, scenario.Pending())
		},
	}
}

func simulateReplaceAllCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:  "replace-all",
		Usage: "show where all pods would go if they were scheduled again",
		Description: "All pods that can move, and the pending ones, are scheduled on nodes that have only the pods of DaemonSets, static\n" +
			"pods and pods that are being deleted: by priority, then by age.",
		UsageText: examples(
			"pmk-sched simulate replace-all --snapshot cluster.tar.gz --preset binpack",
			"pmk-sched simulate replace-all --branch v1.29.3 --config scheduler.yaml -o json",
		),
		Flags: simulateFlags(),
		Action: func(c *cli.Context) error {
			return simulateScenario(c, u, scenario.ReplaceAll())
		},
	}
}

func simulateDrainCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:      "drain",
		Usage:     "show where the pods of nodes would go if these were drained",
		ArgsUsage: "NODE...",
		UsageText: examples(
			"pmk-sched simulate drain worker-7",
			"pmk-sched simulate drain --snapshot cluster.tar.gz -o json worker-7 worker-8",
		),
		Flags: simulateFlags(),
		Action: func(c *cli.Context) error {
			nodes := c.Args().Slice()
			if len(nodes) == 0 {
				return problem.Invalidf(seeHelp(c), "NODE is required")
			}
			for _, node := range nodes {
				if strings.HasPrefix(node, "-") {
					return problem.Invalidf("flags go before arguments", "flag %s comes after the argument %q", node, nodes[0])
				}
			}
			return simulateScenario(c, u, scenario.Drain(nodes))
		},
	}
}

// simulateFlags describe the scheduler and the objects of a simulation.
func simulateFlags(more ...cli.Flag) []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{Name: "snapshot", Usage: "`FILE` with a snapshot", DefaultText: "a new one of the cluster"},
		nameFlag("scheduler"),
		fileFlag(),
		&cli.StringFlag{Name: "branch", Usage: "`RELEASE` of the scheduler", DefaultText: "the snapshot's"},
		&cli.StringFlag{Name: "preset", Usage: "configuration `PRESET`, see `pmk-sched profile list`"},
		&cli.StringFlag{Name: "config", Usage: "`FILE` with a KubeSchedulerConfiguration of any version"},
		&cli.BoolFlag{Name: "lossy", Usage: "drop what the release does not support, with a warning for each loss"},
		&cli.StringSliceFlag{Name: "with", Usage: "`PLUGIN` to compile in, as in `pmk-sched build`"},
		timeoutFlag(simulateTimeout, "the scheduler to decide about all pods"),
		outputFlag(""),
	}, more...)
}

func simulateScenario(c *cli.Context, u *ui, s scenario.Scenario) error {
	flags := nameFlags(c, u)
	flags.Config, flags.Preset, flags.Lossy, flags.Branch = c.String("config"), c.String("preset"), c.Bool("lossy"), c.String("branch")
	sp, err := spec.Read(flags)
	if err != nil {
		return err
	}
	scheduler, err := sp.Simulation(c.StringSlice("with"), nil)
	if err != nil {
		return err
	}
	result, err := u.session.Simulate(c.Context, session.SimulateRequest{
		Scenario: s, Scheduler: scheduler, Snapshot: c.String("snapshot"), Timeout: c.Duration("timeout"), Version: ownVersion(),
	})
	if err != nil {
		return err
	}
	return u.data(c.String("output"), result, simulationTable(result))
}

// mostRows is how many pods of each list the table has. The other formats have all.
const mostRows = 20

// simulationTable prints a summary that fits a terminal.
func simulationTable(r *report.Report) func(io.Writer) error {
	return func(w io.Writer) error {
		s := r.Summary
		p := &printer{w: w}
		p.line("%d of %d pods placed on %d nodes by %s %s, %d moved, %d unplaced, %d evicted",
			s.Placed, s.Scheduled, s.Nodes, r.Scheduler, r.Release, s.Moved, s.Unplaced, s.Evicted)
		p.line("\nRESOURCE\tALLOCATABLE\tBEFORE\tAFTER")
		for _, u := range s.Utilization {
			p.line("%s\t%s\t%.1f %%\t%.1f %%", u.Resource, u.Allocatable, 100*u.Before, 100*u.After)
		}
		if len(r.Placements) > 0 {
			p.line("\nPOD\tFROM\tNODE")
			for _, placement := range r.Placements[:min(mostRows, len(r.Placements))] {
				p.line("%s/%s\t%s\t%s", placement.Namespace, placement.Name, cmp.Or(placement.From, "-"), placement.Node)
			}
			p.more(len(r.Placements))
		}
		p.reasons(r.Unplaced)
		for _, note := range r.Notes {
			p.line("\nnote: %s", note)
		}
		return p.err
	}
}

// printer remembers the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if _, err := fmt.Fprintf(p.w, format+"\n", args...); p.err == nil {
		p.err = err
	}
}

func (p *printer) more(n int) {
	if n > mostRows {
		p.line("… %d more, see -o json", n-mostRows)
	}
}

// reasons prints why pods have no node, the most frequent reason first.
func (p *printer) reasons(unplaced []report.Unplaced) {
	count, example := map[string]int{}, map[string]string{}
	for _, u := range unplaced {
		if count[u.Reason]++; example[u.Reason] == "" {
			example[u.Reason] = u.Namespace + "/" + u.Name
		}
	}
	reasons := slices.SortedFunc(maps.Keys(count), func(a, b string) int { return cmp.Or(count[b]-count[a], cmp.Compare(a, b)) })
	for i, reason := range reasons {
		if i == 0 {
			p.line("\nUNPLACED\tFOR EXAMPLE\tREASON")
		}
		if i < mostRows {
			p.line("%d\t%s\t%s", count[reason], example[reason], reason)
		}
	}
	p.more(len(reasons))
}
