package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/capture"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/files"
)

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
	live := c.String("snapshot")+c.String("upstream") == "" && c.Int("nodes") == 0
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

// deployedScheduler returns the scheduler that is deployed with the spec's name. Its code comes
// from the cluster.
func deployedScheduler(c *cli.Context, u *ui, sp *spec.Spec) (pack.Scheduler, error) {
	return lifecycle.DeployedScheduler(c.Context, u.Session, sp, u.confirmRecorded(trustRecorded, c.Bool(trustRecorded)))
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

func readScenario(name string) ([]scenario.Step, error) {
	text, err := problem.ReadFile("scenario", name)
	if err != nil {
		return nil, err
	}
	return scenario.ParseFile(name, text)
}
