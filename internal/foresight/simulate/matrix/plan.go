package matrix

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/cluster/sysdump/redact"
	"github.com/pmk-sched/pmk-sched/internal/foresight/kubescheduler"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/capture"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/files"
)

// Request describes simulations: each scheduler on each snapshot in each scenario.
type Request struct {
	Schedulers []pack.Scheduler
	Snapshots  []string // files of any format that [files.Read] reads; Stdin is read for "-"
	Stdin      io.Reader
	Scenarios  []Scenario
	// Parallel is the number of simulations that run at the same time.
	Parallel int
	// Timeout bounds the time that a scheduler gets to decide about all pods of a step.
	Timeout time.Duration
	// Job runs the simulations on the cluster. If it is nil, they run on this machine.
	Job *JobRequest
	// Seed breaks ties between equal nodes, in the configurations in [Variants].
	Seed uint64
	// Prices of nodes. They add costs to the figures.
	Prices []report.Price
	// Version of pmk-sched.
	Version string
}

// Scenario is a script with its name in the result.
type Scenario struct {
	Name string
	simulate.Script
}

// plan has everything that simulations need as data, so that a pod can run one of them.
type plan struct {
	Timeout    time.Duration       `json:"timeout"`
	Seed       uint64              `json:"seed"`
	Prices     []report.Price      `json:"prices"`
	Schedulers []simulate.Programs `json:"schedulers"`
	Snapshots  []string            `json:"snapshots"`
	Scenarios  [][]scenario.Step   `json:"scenarios"`

	// prepared are the schedulers' places in the plan, by snapshot and scheduler in the request.
	prepared [][]int
	objects  int      // in the largest snapshot
	files    []string // all that the plan names
}

// plannedCell is one simulation, with its places in the plan's lists.
type plannedCell struct {
	Snapshot  int `json:"snapshot"`
	Scenario  int `json:"scenario"`
	Scheduler int `json:"scheduler"`
	// Configuration is another one than the scheduler's if it is not empty, whose extenders from
	// package ties have no addresses yet.
	Configuration     string `json:"configuration,omitempty"`
	ConfigurationName string `json:"configurationName,omitempty"`
	name              Cell
}

// newPlan compiles the programs and reads the files, so that errors in them are reported before
// anything runs. It copies manifests to dir.
func newPlan(ctx context.Context, s *session.Session, r Request, dir string) (*plan, error) {
	p := &plan{Timeout: r.Timeout, Seed: r.Seed, Prices: r.Prices}
	for i, path := range r.Snapshots {
		file, err := archived(ctx, s, r, path, filepath.Join(dir, fmt.Sprintf("snapshot-%d.tar.gz", i)))
		if err != nil {
			return nil, err
		}
		p.Snapshots = append(p.Snapshots, file)
	}
	p.files = slices.Clone(p.Snapshots)
	for _, sc := range r.Scenarios {
		steps, err := p.copySteps(ctx, sc, dir)
		if err != nil {
			return nil, fmt.Errorf("scenario %s: %w", sc.Name, err)
		}
		p.Scenarios = append(p.Scenarios, steps)
	}
	p.prepared = make([][]int, len(r.Snapshots))
	for i, file := range p.Snapshots {
		for _, scheduler := range r.Schedulers {
			at, err := p.addScheduler(ctx, s, scheduler, file)
			if err != nil {
				return nil, fmt.Errorf("scheduler %s, snapshot %s: %w", scheduler.Source, r.Snapshots[i], err)
			}
			p.prepared[i] = append(p.prepared[i], at)
		}
	}
	return p, nil
}

// archived returns a snapshot's file. It writes other objects to target as a snapshot, which a
// Job's pods can read too.
func archived(ctx context.Context, s *session.Session, r Request, path, target string) (string, error) {
	if files.IsArchive(path) {
		return path, nil
	}
	_, err := capture.Write(ctx, s, capture.Request{From: []string{path}, Stdin: r.Stdin, Version: r.Version}, target)
	return target, err
}

// planCells returns the simulations. Simulations for a snapshot and a scenario follow each other,
// so that schedulers can be compared. prepared are the schedulers' indexes in the plan, by snapshot
// and scheduler.
func planCells(r Request, prepared [][]int) (cells []plannedCell) {
	for i, file := range r.Snapshots {
		for j, sc := range r.Scenarios {
			for k, scheduler := range r.Schedulers {
				name := Cell{Snapshot: file, Scenario: sc.Name, Scheduler: scheduler.Source}
				cells = append(cells, plannedCell{Snapshot: i, Scenario: j, Scheduler: prepared[i][k], name: name})
			}
		}
	}
	return cells
}

// addScheduler returns a scheduler's place in the plan for a snapshot: snapshots from several
// releases need several programs.
func (p *plan) addScheduler(ctx context.Context, s *session.Session, scheduler pack.Scheduler,
	file string) (int, error) {
	snap, err := capture.OpenFile(file)
	if err != nil {
		return 0, err
	}
	objects := 0
	for _, r := range snap.Header.Resources {
		objects += r.Objects
	}
	p.objects = max(p.objects, objects)
	release, err := simulate.ReleaseOf(ctx, s, scheduler.Branch, snap.Header)
	if err != nil {
		return 0, err
	}
	index := slices.IndexFunc(p.Schedulers, func(other simulate.Programs) bool {
		return other.Scheduler.Request.Source == scheduler.Source && other.Scheduler.Release == release
	})
	if index >= 0 {
		return index, nil
	}
	programs, err := simulate.Compile(ctx, s, scheduler, snap.Header)
	if err != nil {
		return 0, err
	}
	if _, err := programs.Scheduler.Configure(s, "kubeconfig", 1); err != nil {
		return 0, err
	}
	request := &programs.Scheduler.Request
	request.Plugins, request.Imports, request.Request = nil, nil, nil // they are compiled in
	p.Schedulers = append(p.Schedulers, programs)
	return len(p.Schedulers) - 1, nil
}

// copySteps returns a scenario's steps with copies of their manifests in dir, without secrets: they
// may leave this machine.
func (p *plan) copySteps(ctx context.Context, sc Scenario, dir string) ([]scenario.Step, error) {
	copyFiles := func(paths ...string) (string, error) {
		manifests, _, err := sc.Manifests(ctx, paths)
		if err != nil {
			return "", err
		}
		var text []byte
		for _, o := range manifests {
			line, err := json.Marshal(redact.New().Value(o))
			if err != nil {
				return "", err
			}
			text = append(append(text, line...), '\n')
		}
		file := filepath.Join(dir, fmt.Sprintf("manifests-%d.json", len(p.files)))
		p.files = append(p.files, file)
		return file, os.WriteFile(file, text, 0o600)
	}
	steps := slices.Clone(sc.Steps)
	for i := range steps {
		step := &steps[i]
		if len(step.Files) > 0 {
			file, err := copyFiles(step.Files...)
			if err != nil {
				return nil, err
			}
			step.Files = []string{file}
		}
		step.Add = slices.Clone(step.Add)
		for j, add := range step.Add {
			if add.IsFile() {
				file, err := copyFiles(add.Template)
				if err != nil {
					return nil, err
				}
				step.Add[j].Template = file
			}
		}
	}
	_, err := simulate.Script{Steps: steps}.Read(ctx)
	return steps, err
}

// simulate runs one simulation in a plan.
func (p *plan) simulate(
	ctx context.Context, runs *simulate.Runs, cell plannedCell,
) (_ *report.Report, err error) {
	m := &simulate.Simulation{Programs: p.Schedulers[cell.Scheduler], Timeout: p.Timeout, Prices: p.Prices}
	if m.Scenarios, err = (simulate.Script{Steps: p.Scenarios[cell.Scenario]}).Read(ctx); err != nil {
		return nil, err
	}
	if m.Snapshot, err = capture.OpenFile(p.Snapshots[cell.Snapshot]); err != nil {
		return nil, err
	}
	if cell.Configuration != "" {
		var breaker *kubescheduler.Breaker
		if breaker, err = kubescheduler.StartBreaker(p.Seed); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, breaker.Close(ctx)) }()
		c := &m.Programs.Scheduler.Request.Configuration
		c.Preset, c.Source, c.SourceName = "", breaker.Resolve(cell.Configuration), cell.ConfigurationName
		c.Extenders, c.Confined = nil, false // they are in it, and newPlan rendered what it is made of
	}
	results, err := runs.Results(ctx, m, 1)
	if err != nil {
		return nil, err
	}
	return results[0], nil
}
