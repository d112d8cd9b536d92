package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/tempdir"
	"github.com/pmk-sched/pmk-sched/internal/cluster/sysdump/redact"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/matrix"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
)

// MatrixRequest describes simulations: each scheduler on each snapshot in each scenario.
type MatrixRequest struct {
	Schedulers []Baseline
	Snapshots  []string // files
	Scenarios  []MatrixScenario
	// Parallel is how many simulations run at the same time.
	Parallel int
	// Timeout bounds the time that a scheduler gets to decide about all pods of a step.
	Timeout time.Duration
	// Job runs the simulations on the cluster. If it is nil, they run on this machine.
	Job *MatrixJob
}

// MatrixScenario is a scenario with its name in the result. The files of its steps are relative to Dir.
type MatrixScenario struct {
	Name, Dir string
	Steps     []scenario.Step
}

// matrixPlan lists the simulations as data, so that a pod can run a part of them.
type matrixPlan struct {
	Timeout    time.Duration       `json:"timeout"`
	Schedulers []preparedScheduler `json:"schedulers"`
	Snapshots  []string            `json:"snapshots"`
	Scenarios  [][]scenario.Step   `json:"scenarios"`
	// Cells are the simulations, in the order of their indexes in a Job.
	Cells []plannedCell `json:"cells"`

	objects int      // in the largest snapshot
	files   []string // all that the plan names
}

// plannedCell is one simulation, with its places in the lists of the plan.
type plannedCell struct {
	Snapshot  int `json:"snapshot"`
	Scenario  int `json:"scenario"`
	Scheduler int `json:"scheduler"`
	name      matrix.Cell
}

// SimulateMatrix simulates each scheduler on each snapshot in each scenario. A simulation that fails has an error in the result. The cluster is not used,
// except for the Job.
func (s *Session) SimulateMatrix(ctx context.Context, r MatrixRequest) (result *matrix.Result, err error) {
	run := s.simulateCells
	if r.Job != nil {
		if run, err = s.matrixJob(r.Job); err != nil {
			return nil, err
		}
	}
	dir, remove, err := tempdir.Make("matrix")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	plan, err := s.planMatrix(ctx, r, dir)
	if err != nil {
		return nil, err
	}
	outcomes, err := run(ctx, plan, r.Parallel, dir)
	if outcomes == nil {
		return nil, err
	}
	result = &matrix.Result{}
	for i, o := range outcomes {
		cell := plan.Cells[i].name
		cell.Outcome = o
		result.Cells = append(result.Cells, cell)
	}
	return result, err
}

// planMatrix compiles the programs and reads the files, so that errors in them are reported before
// anything runs. It copies manifests to dir.
func (s *Session) planMatrix(ctx context.Context, r MatrixRequest, dir string) (*matrixPlan, error) {
	p := &matrixPlan{Timeout: r.Timeout, Snapshots: r.Snapshots, files: slices.Clone(r.Snapshots)}
	for _, sc := range r.Scenarios {
		steps, err := p.copySteps(ctx, sc, dir)
		if err != nil {
			return nil, fmt.Errorf("scenario %s: %w", sc.Name, err)
		}
		p.Scenarios = append(p.Scenarios, steps)
	}
	prepared := make([][]int, len(r.Snapshots))
	for i, file := range r.Snapshots {
		for _, scheduler := range r.Schedulers {
			at, err := s.planScheduler(ctx, p, scheduler, file)
			if err != nil {
				return nil, fmt.Errorf("scheduler %s, snapshot %s: %w", scheduler.Source, file, err)
			}
			prepared[i] = append(prepared[i], at)
		}
	}
	p.Cells = planCells(r, prepared)
	return p, nil
}

// planCells returns the simulations. Simulations of a snapshot and a scenario follow each other, so
// that schedulers can be compared. prepared are the indexes of the schedulers in the plan, by
// snapshot and scheduler.
func planCells(r MatrixRequest, prepared [][]int) (cells []plannedCell) {
	for i, file := range r.Snapshots {
		for j, sc := range r.Scenarios {
			for k, scheduler := range r.Schedulers {
				name := matrix.Cell{Snapshot: file, Scenario: sc.Name, Scheduler: scheduler.Source}
				cells = append(cells, plannedCell{Snapshot: i, Scenario: j, Scheduler: prepared[i][k], name: name})
			}
		}
	}
	return cells
}

// planScheduler returns the place of a scheduler for a snapshot in the plan: snapshots of several releases need several programs.
func (s *Session) planScheduler(ctx context.Context, p *matrixPlan, scheduler Baseline, file string) (int, error) {
	h, err := archived(file).header()
	if err != nil {
		return 0, err
	}
	objects := 0
	for _, r := range h.Resources {
		objects += r.Objects
	}
	p.objects = max(p.objects, objects)
	release, err := s.simulatedRelease(ctx, scheduler.Scheduler.Branch, h)
	if err != nil {
		return 0, err
	}
	known := slices.IndexFunc(p.Schedulers, func(other preparedScheduler) bool {
		return other.source == scheduler.Source && other.Release == release
	})
	if known >= 0 {
		return known, nil
	}
	prepared, err := s.prepareScheduler(ctx, scheduler.Scheduler, h)
	if err != nil {
		return 0, err
	}
	if _, err := s.simulationOptions(prepared, p.Timeout).Scheduler.Configuration("kubeconfig", 1); err != nil {
		return 0, err
	}
	prepared.source = scheduler.Source
	prepared.Scheduler.Plugins, prepared.Scheduler.Imports = nil, nil // they are compiled in
	p.Schedulers = append(p.Schedulers, prepared)
	return len(p.Schedulers) - 1, nil
}

// copySteps returns the steps of a scenario with copies of their manifests in dir, without secrets: they may leave this machine.
func (p *matrixPlan) copySteps(ctx context.Context, sc MatrixScenario, dir string) ([]scenario.Step, error) {
	copyFiles := func(paths ...string) (string, error) {
		manifests, err := SimulateRequest{Dir: sc.Dir}.manifests(ctx, paths)
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
	_, err := readSteps(ctx, SimulateRequest{Steps: steps})
	return steps, err
}

// simulateCells runs the simulations of a plan on this machine, up to parallel of them at the same
// time, each with its own API servers.
func (s *Session) simulateCells(ctx context.Context, p *matrixPlan, parallel int, _ string) (_ []matrix.Outcome, err error) {
	quiet := s.quiet()
	free := make(chan *apiServers, parallel)
	for range parallel {
		servers, makeErr := quiet.newAPIServers("simulate")
		if makeErr != nil {
			return nil, makeErr
		}
		defer func() { err = errors.Join(err, servers.Close()) }()
		free <- servers
	}
	outcomes := make([]matrix.Outcome, len(p.Cells))
	var running sync.WaitGroup
	for i, cell := range p.Cells {
		servers := <-free
		if ctx.Err() != nil {
			break
		}
		running.Go(func() {
			defer func() { free <- servers }()
			done := s.OnStep("simulate " + cell.name.String())
			result, err := quiet.simulateCell(ctx, p, i, servers)
			done(err)
			outcomes[i] = matrix.NewOutcome(result, err)
		})
	}
	running.Wait()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("simulate: %w", ctx.Err())
	}
	return outcomes, nil
}

// quiet returns the session without messages: planMatrix has reported them for all schedulers.
func (s *Session) quiet() *Session {
	quiet := *s.Session
	quiet.OnStep = func(string) func(error) { return func(error) {} }
	quiet.Warn, quiet.Note = func(string) {}, func(string) {}
	return &Session{&quiet}
}

// simulateCell runs one simulation of a plan.
func (s *Session) simulateCell(ctx context.Context, p *matrixPlan, index int, servers *apiServers) (*report.Report, error) {
	cell := p.Cells[index]
	request := SimulateRequest{Steps: p.Scenarios[cell.Scenario], Timeout: p.Timeout}
	scenarios, err := readSteps(ctx, request)
	if err != nil {
		return nil, err
	}
	objects := archived(p.Snapshots[cell.Snapshot])
	h, err := objects.header()
	if err != nil {
		return nil, err
	}
	sim := simulation{s: s, scenarios: scenarios, objects: objects, header: h, request: request, servers: servers}
	return sim.runSteps(ctx, s.simulationOptions(p.Schedulers[cell.Scheduler], p.Timeout))
}
