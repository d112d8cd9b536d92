package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/page"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/tune"
)

// defaultScenario schedules all pods again: settings affect each of them.
const defaultScenario = "replace-all"

func tuneCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "tune", ArgsUsage: "[SCENARIO]", Usage: "search settings of a scheduler by simulations: the Pareto front of objectives",
		Description: "Tries weights, strategies and other settings with the scheduler itself, beginning with today's " +
			"configuration and the presets, and prints those that no others beat in all objectives. SCENARIO is " +
			defaultScenario + " (the default), pending, or a file as for `simulate run`. Figures of snapshots that the search " +
			"did not see are next to the others. No cluster is used, except with --job: the simulations then run there, as in " +
			"`simulate matrix`.",
		UsageText: command.Examples("pmk-sched tune --snapshot monday.tar.gz --snapshot friday.tar.gz --report tune.html",
			"pmk-sched tune -f pmk-sched.yaml --snapshot a.tar.gz --holdout b.tar.gz --to-dir tuned",
			"pmk-sched tune --snapshot a.tar.gz --job --push --tag reg.example.com/tune:v1 --parallel 24"),
		Flags: append(localSchedulerFlags("the snapshot's",
			&cli.StringSliceFlag{Name: "snapshot", Usage: snapshotUsage},
			&cli.StringSliceFlag{Name: "holdout", Usage: "`PATH` of a snapshot that the search does not see",
				DefaultText: "the last third of several --snapshot"},
			&cli.StringFlag{Name: "objective", Value: "empty-nodes,spread,moves,unplaced",
				Usage: "`LIST` of empty-nodes, spread, zones, moves, cost, unplaced"},
			&cli.StringSliceFlag{Name: "price", Usage: "`TYPE=PRICE` of a node, as in `simulate`, for cost"},
			&cli.IntFlag{Name: "trials", Value: 40, Usage: "try `NUMBER` of configurations", Action: atLeast("trials", 1)},
			&cli.Uint64Flag{Name: "seed", Value: 1, Usage: "`NUMBER` that selects the samples and breaks ties"},
			parallelFlag(),
			jobFlag(),
			&cli.StringFlag{Name: "report", Usage: "write the result to `FILE` as a web page"},
			&cli.StringFlag{Name: "to-dir", Usage: "write the files of each point to the new directory `DIR`"},
			unknownReleaseFlag(u),
			timeoutFlag(simulateTimeout, "the scheduler to decide about all pods of a simulation"), command.OutputFlag(""),
		), jobFlags()...),
		Action: func(c *cli.Context) error { return tuneScheduler(c, u) },
	}
}

func tuneScheduler(c *cli.Context, u *ui) error {
	request, err := tuneRequest(c, u)
	if err != nil {
		return err
	}
	dir := c.String("to-dir")
	if _, err := os.Lstat(dir); dir != "" && err == nil {
		return problem.Invalidf("name a new directory", "--to-dir %s exists", dir)
	}
	result, err := withReport(c.Context, c.String("report"), page.WriteTuning, func() (*tune.Result, error) {
		return tune.Run(c.Context, u.Session, request)
	})
	if err != nil {
		return err
	}
	if dir != "" {
		if err := writePoints(dir, result); err != nil {
			return fmt.Errorf("write --to-dir: %w", err)
		}
	}
	next := "--to-dir DIR writes the files of each point"
	if dir != "" && len(result.Points) > 0 {
		next = "`pmk-sched check -f " + filepath.Join(dir, pointDir(0, &result.Points[0]), "pmk-sched.yaml") + "`, or another point"
	}
	return u.Conclude(c.String("output"), result, tuneTable(result), "", next)
}

func tuneRequest(c *cli.Context, u *ui) (r tune.Request, err error) {
	r = tune.Request{
		Snapshots: c.StringSlice("snapshot"), HeldOut: c.StringSlice("holdout"), Stdin: u.In, ScenarioName: defaultScenario,
		Trials: c.Int("trials"), Seed: c.Uint64("seed"), Timeout: c.Duration("timeout"), Version: ownVersion(),
	}
	if err := readsStdinOnce(c, "file", "snapshot", "holdout"); err != nil {
		return r, err
	}
	if len(r.Snapshots) == 0 {
		return r, problem.Invalidf("`pmk-sched snapshot --to-file FILE` makes one", "--snapshot is required")
	}
	if r.Objectives, err = tune.ParseObjectives(c.String("objective")); err != nil {
		return r, problem.Invalidf("", "invalid --objective %w", err)
	}
	if r.Prices, err = readPrices(c); err != nil {
		return r, err
	}
	for _, o := range r.Objectives {
		if o.Name == tune.Cost && len(r.Prices) == 0 {
			return r, problem.Invalidf("for example --price m5.large=0.096", "--objective cost requires --price")
		}
	}
	if c.NArg() > 1 {
		return r, problem.Invalidf(command.SeeHelp(c), "expected at most one SCENARIO, got %d arguments", c.NArg())
	}
	if c.NArg() == 1 {
		r.ScenarioName = c.Args().First()
	}
	steps := []scenario.Step{{Scenario: r.ScenarioName}}
	if r.ScenarioName != defaultScenario && r.ScenarioName != "pending" {
		if steps, err = readScenario(r.ScenarioName); err != nil {
			return r, err
		}
	}
	r.Script = simulate.Script{Dir: filepath.Dir(r.ScenarioName), Steps: steps}
	if r.Job, r.Parallel, err = readJob(c, u); err != nil {
		return r, err
	}
	r.Scheduler, err = simulatedScheduler(c, u, false)
	return r, err
}

// pointDir is the name of the directory of the point with an index.
func pointDir(index int, p *tune.Point) string {
	return strconv.Itoa(index+1) + "-" + strings.ReplaceAll(p.Name, " ", "-")
}

// writePoints writes each point's files to a separate directory. The directory appears when it is
// complete.
func writePoints(dir string, r *tune.Result) (err error) {
	temporary, err := os.MkdirTemp(filepath.Dir(dir), ".tune-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temporary)) }()
	for i := range r.Points {
		p := &r.Points[i]
		point := filepath.Join(temporary, pointDir(i, p))
		if err := os.Mkdir(point, 0o755); err != nil {
			return err
		}
		for name, text := range map[string]string{"pmk-sched.yaml": p.Spec, "scheduler.yaml": p.Configuration,
			"eks.json": p.EKS.Text, "aks.yaml": p.AKS.Text} {
			if text == "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(point, name), []byte(text), 0o644); err != nil {
				return err
			}
		}
	}
	if err := os.Chmod(temporary, 0o755); err != nil {
		return err
	}
	return os.Rename(temporary, dir)
}

func tuneTable(r *tune.Result) string {
	var p printer
	p.Line("%s of %s %s, %s, on %s, %d held out, seed %d", plural.Count(len(r.Trials), "configuration"), r.Scheduler,
		r.Release, r.Scenario, plural.Count(len(r.Snapshots), "snapshot"), len(r.HeldOut), r.Seed)
	p.Row()
	head := []any{"POINT", "FRONT"}
	for _, o := range r.Objectives {
		head = append(head, strings.ToUpper(o.Name))
	}
	if len(r.HeldOut) > 0 {
		head = append(head, "HELD OUT: FRONT")
		for _, o := range r.Objectives {
			head = append(head, strings.ToUpper(o.Name))
		}
	}
	p.Row(head...)
	for i := range r.Points {
		point := &r.Points[i]
		row := append([]any{point.Name, point.Front}, figures(point.Figures)...)
		if point.HeldOut != nil {
			row = append(append(row, point.HeldOutFront), figures(point.HeldOut)...)
		}
		p.Row(row...)
	}
	figuresOf := "the search"
	if len(r.HeldOut) > 0 {
		figuresOf = "snapshots held out"
	}
	p.Line("\nchoices, with figures of %s:", figuresOf)
	p.Row("OBJECTIVE", "POINT", "FIGURE", "BEST PRESET", "FIGURE", "NO WORSE")
	for _, c := range r.Choices {
		p.Row(c.Objective, c.Point, tune.Format(c.Figure), c.Preset, tune.Format(c.PresetFigure), c.Verdict())
	}
	p.Line("\nchanges of today's configuration:")
	for i := range r.Points {
		point := &r.Points[i]
		p.WriteString(wrapText(fmt.Sprintf("%s (EKS does not accept %d of the settings, AKS %d)", orDash(strings.Join(point.Changes,
			"; ")), len(point.EKS.Lost), len(point.AKS.Lost)), "  "+point.Name+": ", "    "))
	}
	p.notes(r.Notes)
	p.unknown(r.Unknown)
	return p.String()
}

// figures formats figures: whole numbers as such, others with three digits.
func figures(f tune.Figures) []any {
	var cells []any
	for _, value := range f {
		cells = append(cells, tune.Format(value))
	}
	return cells
}
