package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/matrix"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
)

const (
	// simulateCell is the hidden command in the pods of `simulate matrix --job` and `tune --job`.
	simulateCell = "simulate-cell"
	// defaultParallelJob is the number of pods that run at the same time by default: a Job with
	// hundreds of simulations must not fill the cluster.
	defaultParallelJob = 10
)

func simulateMatrixCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:      "matrix",
		Usage:     "run many simulations: each scheduler on each snapshot in each scenario",
		ArgsUsage: "SCENARIO...",
		Description: "SCENARIO is pending, replace-all, or a file as for `simulate run`. With --job the simulations run on " +
			"the cluster, as one indexed Job whose image contains all programs and files. The Job is deleted in the end.\n\n" +
			"Exit status 1: a simulation failed; the results of the others are printed.",
		UsageText: command.Examples("pmk-sched simulate matrix --snapshot a.tar.gz -f default -f new.yaml pending scenario.yaml",
			"pmk-sched simulate matrix --snapshot a.tar.gz --job --push --tag reg.example.com/m:v1 replace-all"),
		Flags: append([]cli.Flag{
			&cli.StringSliceFlag{
				Name: "file", Aliases: []string{"f"}, DefaultText: "default",
				Usage: "`FILE`: pmk-sched.yaml of a scheduler, or default: the default scheduler",
			},
			&cli.StringSliceFlag{Name: "snapshot", Usage: snapshotUsage},
			&cli.StringFlag{Name: "branch", Usage: "`RELEASE` of the schedulers", DefaultText: "the release of each snapshot"},
			unknownReleaseFlag(u),
			parallelFlag(),
			timeoutFlag(simulateTimeout, "a scheduler to decide about all pods"),
			jobFlag(),
			command.OutputFlag(""),
		}, jobFlags()...),
		Action: func(c *cli.Context) error { return simulateMatrix(c, u) },
	}
}

func simulateMatrix(c *cli.Context, u *ui) error {
	request, err := matrixRequest(c, u)
	if err != nil {
		return err
	}
	result, err := matrix.Run(c.Context, u.Session, request)
	if result == nil {
		return err
	}
	if printed := u.Data(c.String("output"), result, matrixTable(result)); printed != nil {
		return printed
	}
	if err := cmp.Or(err, failedCells(result)); err != nil {
		return err
	}
	u.Verdict("", "`pmk-sched simulate pending --report report.html` with the --file and --snapshot of a row shows where its pods go")
	return nil
}

func failedCells(result *matrix.Result) error {
	failed, hints := 0, []string{}
	for _, cell := range result.Cells {
		if cell.Error != "" {
			failed++
			hints = append(hints, cell.Hints...)
		}
	}
	if failed == 0 {
		return nil
	}
	err := fmt.Errorf("%d of %s failed", failed, plural.Count(len(result.Cells), "simulation"))
	for _, hint := range hints {
		err = problem.WithHint(err, hint)
	}
	return err
}

func matrixRequest(c *cli.Context, u *ui) (matrix.Request, error) {
	r := matrix.Request{Snapshots: c.StringSlice("snapshot"), Stdin: u.In, Version: ownVersion(),
		Timeout: c.Duration("timeout")}
	if err := cmp.Or(command.CheckList(c), readsStdinOnce(c, "file", "snapshot")); err != nil {
		return r, err
	}
	if len(r.Snapshots) == 0 {
		return r, problem.Invalidf("`pmk-sched snapshot --to-file FILE` makes one", "--snapshot is required")
	}
	schedulers := c.StringSlice("file")
	if len(schedulers) == 0 {
		schedulers = []string{defaultBaseline}
	}
	for _, name := range schedulers {
		scheduler, err := readBaseline(u, "--file", name, c.String("branch"))
		if err != nil {
			return r, err
		}
		r.Schedulers = append(r.Schedulers, scheduler)
	}
	for _, name := range c.Args().Slice() {
		steps, err := []scenario.Step{{Scenario: name}}, error(nil)
		if name != "pending" && name != "replace-all" {
			steps, err = readScenario(name)
		}
		if err != nil {
			return r, err
		}
		script := simulate.Script{Dir: filepath.Dir(name), Steps: steps}
		r.Scenarios = append(r.Scenarios, matrix.Scenario{Name: name, Script: script})
	}
	var err error
	r.Job, r.Parallel, err = readJob(c, u)
	return r, err
}

// simulateCellCommand returns the command that a Job's pods run.
func simulateCellCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: simulateCell, Hidden: true, Usage: "run in a pod of `simulate matrix --job`",
		Action: func(c *cli.Context) error {
			const variable = "JOB_COMPLETION_INDEX" // the controller of indexed Jobs sets it
			index, err := strconv.Atoi(os.Getenv(variable))
			if err != nil {
				return problem.Invalidf("this command is for pods of `pmk-sched simulate matrix --job`", "read %s: %w", variable,
					err)
			}
			return matrix.RunCell(c.Context, u.Session, os.Getenv(matrix.ListVariable), index, u.Out)
		},
	}
}

func matrixTable(r *matrix.Result) string {
	var p printer
	p.Row("SNAPSHOT", "SCENARIO", "SCHEDULER", "RELEASE",
		"PLACED", "UNPLACED", "MOVED", "EVICTED", "EMPTY NODES", "CPU", "MEMORY")
	for _, cell := range r.Cells {
		if cell.Result == nil {
			p.Row(cell.Snapshot, cell.Scenario, cell.Scheduler, "-", "failed", "-", "-", "-", "-", "-", "-")
			continue
		}
		s := cell.Result.Summary
		empty := "-"
		if s.After != nil {
			empty = strconv.Itoa(len(s.After.EmptyNodes))
		}
		utilization := map[string]string{}
		for _, u := range s.Utilization {
			utilization[u.Resource] = fmt.Sprintf("%.1f %%", 100*u.After)
		}
		p.Row(cell.Snapshot, cell.Scenario, cell.Scheduler, cell.Result.Release,
			s.Placed, s.Unplaced, s.Moved, s.Evicted, empty, orDash(utilization["cpu"]), orDash(utilization["memory"]))
	}
	for _, cell := range r.Cells {
		if cell.Error != "" {
			first, _, _ := strings.Cut(cell.Error, "\n") // the logs of programs follow
			p.Line("\n%s: %s", cell, first)
		}
	}
	var notes []string
	for _, cell := range r.Cells {
		if cell.Result == nil {
			continue
		}
		for _, note := range cell.Result.Notes {
			if note = cell.Snapshot + ", " + cell.Scheduler + ": " + note; !slices.Contains(notes, note) {
				notes = append(notes, note)
			}
		}
	}
	p.notes(notes)
	return p.String()
}
