package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
	"github.com/pmk-sched/pmk-sched/internal/foresight/page"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/capture"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/files"
)

// simulateTimeout is enough for 20,000 pods on a small machine.
const simulateTimeout = 30 * time.Minute

func simulateCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "simulate", Usage: "simulate a scheduler on a copy of the cluster's objects",
		Description: "Runs the scheduler itself on an API server without nodes. The cluster is only read. With --snapshot " +
			"no cluster is used.",
		Subcommands: []*cli.Command{
			simulateStepCommand(u, cli.Command{
				Name: "pending", Usage: "show where the pending pods would go, or why not",
				Description: "The scheduler gets the pending pods in the order of its queue: by priority, then by age. It may " +
					"evict pods, which are listed.",
				UsageText: command.Examples("pmk-sched simulate pending",
					"pmk-sched simulate pending --snapshot cluster.tar.gz --preset binpack -o json"),
			}),
			simulateStepCommand(u, cli.Command{
				Name: "replace-all", Usage: "show where all pods would go if they were scheduled again",
				Description: "Schedules all movable and pending pods, by priority, then by age, on nodes that have only the " +
					"pods of DaemonSets, static pods and pods that are being deleted.",
				UsageText: command.Examples("pmk-sched simulate replace-all --snapshot cluster.tar.gz --preset binpack",
					"pmk-sched simulate replace-all --branch v1.29.3 --config scheduler.yaml -o json"),
			}),
			simulateStepCommand(u, cli.Command{
				Name: "drain", ArgsUsage: "NODE...", Usage: "show where the pods of drained nodes would go",
				UsageText: command.Examples("pmk-sched simulate drain worker-7",
					"pmk-sched simulate drain --snapshot cluster.tar.gz -o json worker-7 worker-8"),
			}),
			simulateAddCommand(u), simulateNodesCommand(u), simulateRunCommand(u), simulateMatrixCommand(u),
			simulatePreemptionsCommand(u), simulateReplayCommand(u),
		},
	}
}

// simulateStepCommand completes a command that runs the step with its name, on the nodes that its
// arguments name.
func simulateStepCommand(u *ui, cmd cli.Command) *cli.Command {
	cmd.Flags = simulateFlags(u)
	cmd.Action = func(c *cli.Context) error {
		step := scenario.Step{Scenario: cmd.Name}
		if cmd.ArgsUsage != "" {
			if err := command.CheckList(c); err != nil {
				return err
			}
			step.Nodes = c.Args().Slice()
		}
		return simulateSteps(c, u, "", step)
	}
	return &cmd
}

// simulateFlags describe a simulation's scheduler and objects.
func simulateFlags(u *ui, more ...cli.Flag) []cli.Flag {
	return simulatedFlags(append([]cli.Flag{
		&cli.StringFlag{
			Name:  "against",
			Usage: "compare with the scheduler of `FILE`, a pmk-sched.yaml, or default: the default scheduler; it runs twice",
		},
		&cli.StringSliceFlag{
			Name: "price",
			Usage: "`TYPE=PRICE` of a node: TYPE is an instance type, or KEY=VALUE of a label; " +
				"adds the costs of all nodes and of empty nodes",
		},
		&cli.StringFlag{Name: "report", Usage: "write the result to `FILE` as a web page"},
		unknownReleaseFlag(u),
		timeoutFlag(simulateTimeout, "the scheduler to decide about all pods"), command.OutputFlag(""),
	}, more...)...)
}

// simulatedFlags describe a scheduler to run on a snapshot.
func simulatedFlags(more ...cli.Flag) []cli.Flag {
	snapshot := &cli.StringFlag{Name: "snapshot", Usage: snapshotUsage, DefaultText: "a new one of the cluster"}
	return append([]cli.Flag{snapshot, trustFlag()}, localSchedulerFlags("the snapshot's", more...)...)
}

// trustRecorded is the flag that runs a deployed scheduler's code without a question.
const trustRecorded = "trust-recorded-plugins"

func trustFlag() cli.Flag {
	return &cli.BoolFlag{Name: trustRecorded, Usage: "run the recorded plugins of --name without a question"}
}

// deployedScheduler returns the scheduler that is deployed with the spec's name. Its code comes
// from the cluster.
func deployedScheduler(c *cli.Context, u *ui, sp *spec.Spec) (pack.Scheduler, error) {
	return lifecycle.DeployedScheduler(c.Context, u.Session, sp, u.confirmRecorded(trustRecorded, c.Bool(trustRecorded)))
}

// snapshotUsage describes the flag --snapshot.
const snapshotUsage = "`PATH` of a snapshot, or of anything that `snapshot --from` reads"

// localSchedulerFlags describe a scheduler to run on this machine, at a release by default.
func localSchedulerFlags(release string, more ...cli.Flag) []cli.Flag {
	return append([]cli.Flag{
		fileFlag(), nameFlag("scheduler"),
		&cli.StringFlag{Name: "branch", Usage: "`RELEASE` of the scheduler", DefaultText: release},
		&cli.StringFlag{Name: "preset", Usage: "configuration `PRESET`, see `pmk-sched profile list`"},
		&cli.StringFlag{Name: "config", Usage: "`FILE` with a KubeSchedulerConfiguration of any version"},
		&cli.BoolFlag{Name: "lossy", Usage: "drop settings that the release does not support, with a warning for each"},
		&cli.StringSliceFlag{Name: "with", Usage: "`PLUGIN` to compile in, as in `pmk-sched build`"},
	}, more...)
}

// simulatedScheduler returns the scheduler that the flags describe. If they only name one and live
// is set, because the command reads the cluster, it is the scheduler that is deployed under this
// name.
func simulatedScheduler(c *cli.Context, u *ui, live bool) (pack.Scheduler, error) {
	flags := nameFlags(c, u)
	flags.Config, flags.Preset, flags.Lossy, flags.Branch = c.String("config"), c.String("preset"), c.Bool("lossy"),
		c.String("branch")
	if c.Command.Name == "explain" {
		flags.Namespace = "" // -n is the pod's namespace
	}
	sp, err := spec.Read(flags)
	if err != nil {
		return pack.Scheduler{}, err
	}
	with := c.StringSlice("with")
	if !live || flags.Name == "" || flags.File+flags.Config+flags.Preset != "" || len(with) > 0 {
		return sp.Simulation(with, nil)
	}
	scheduler, err := deployedScheduler(c, u, sp)
	if branch := c.String("branch"); branch != "" {
		scheduler.Branch = branch
	}
	return scheduler, problem.WithHint(err, "describe a scheduler that is not deployed with -f, --config or --preset")
}

// simulateSteps runs steps whose files are relative to dir.
func simulateSteps(c *cli.Context, u *ui, dir string, steps ...scenario.Step) error {
	r := simulate.Request{Script: simulate.Script{Steps: steps, Dir: dir, Stdin: u.In}}
	var against []string
	if source := c.String("against"); source != "" {
		against = []string{source}
	}
	var err error
	if r.Input, err = readInput(c, u, against...); err != nil {
		return err
	}
	if r.Prices, err = readPrices(c); err != nil {
		return err
	}
	result, err := withReport(c.Context, c.String("report"), page.Write, func() (*report.Report, error) {
		return simulate.Simulate(c.Context, u.Session, r)
	})
	if err != nil {
		return err
	}
	return u.Data(c.String("output"), result, simulationTable(result))
}

// readPrices returns the prices from --price.
func readPrices(c *cli.Context) (prices []report.Price, err error) {
	for _, text := range c.StringSlice("price") {
		price, err := report.ParsePrice(text)
		if err != nil {
			return nil, problem.Invalidf("", "invalid --price %w", err)
		}
		prices = append(prices, price)
	}
	return prices, nil
}

// readInput returns the scheduler and the objects from [simulatedFlags], and the schedulers from
// --against.
func readInput(c *cli.Context, u *ui, against ...string) (simulate.Input, error) {
	in := simulate.Input{Snapshot: capture.Request{Stdin: u.In, Version: ownVersion()}, Timeout: c.Duration("timeout")}
	if path := c.String("snapshot"); path != "" {
		in.Snapshot.From = []string{path}
	}
	err := readsStdinOnce(c, "file", "manifests", "snapshot", "against")
	if err != nil {
		return in, err
	}
	live := c.String("snapshot")+c.String("workload") == "" && c.Int("nodes") == 0
	if in.Scheduler, err = simulatedScheduler(c, u, live); err != nil {
		return in, err
	}
	for _, source := range against {
		baseline, err := readBaseline(u, "--against", source, c.String("branch"))
		if err != nil {
			return in, err
		}
		in.Against = append(in.Against, baseline)
	}
	return in, nil
}

// readsStdinOnce returns an error if several flags name standard input.
func readsStdinOnce(c *cli.Context, flags ...string) error {
	var found []string
	for _, flag := range flags {
		for _, path := range append(c.StringSlice(flag), c.String(flag)) {
			if path == files.Stdin {
				found = append(found, "--"+flag)
			}
		}
	}
	if len(found) > 1 {
		return problem.Invalidf("", "%s cannot both be standard input", strings.Join(found[:2], " and "))
	}
	return nil
}

// defaultBaseline is the value of --against for the default scheduler.
const defaultBaseline = v1alpha1.DefaultScheduler

// readBaseline returns the scheduler in a pmk-sched.yaml, or the default scheduler. name is the
// flag or the field that names it.
func readBaseline(u *ui, name, source, branch string) (pack.Scheduler, error) {
	flags := spec.Flags{Namespace: u.Namespace, Version: ownVersion(), Branch: branch}
	if source != defaultBaseline {
		flags.File, flags.FileFlag, flags.Stdin = source, name, u.In
	}
	sp, err := spec.Read(flags)
	if err != nil {
		return pack.Scheduler{}, err
	}
	scheduler, err := sp.Simulation(nil, nil)
	if err != nil {
		return scheduler, fmt.Errorf("%s: %w", name, err)
	}
	scheduler.Source = source
	return scheduler, nil
}

// withReport writes a result's page to a file, which is replaced when it is complete. Only its
// owner may read it. A wrong path fails before the simulation. An empty one writes nothing.
func withReport[T any](
	ctx context.Context, file string, write func(io.Writer, *T) error, run func() (*T, error),
) (result *T, err error) {
	if file == "" {
		return run()
	}
	err = safeio.WriteFile(ctx, file, 0o600, func(f *os.File) error {
		if result, err = run(); err != nil {
			return err
		}
		out := bufio.NewWriter(f)
		return errors.Join(write(out, result), out.Flush())
	})
	if err != nil {
		return nil, err
	}
	return result, nil
}
