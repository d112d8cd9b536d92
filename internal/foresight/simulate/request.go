package simulate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/capture"
)

// Input are the schedulers and the objects for a simulation or a measurement.
type Input struct {
	// Scheduler is compared with the schedulers in Against, if there are any.
	Scheduler pack.Scheduler
	Against   []pack.Scheduler
	// Snapshot is the cluster, or the file with its objects.
	Snapshot capture.Request
	// Timeout bounds the time that a scheduler gets to decide about all pods of a step or a sample.
	Timeout time.Duration
}

// Request describes a simulation. It has at most one scheduler to compare with.
type Request struct {
	Input
	Script
	// Prices of nodes. They add costs to the figures.
	Prices []report.Price
}

// Simulate runs a script with a scheduler on a snapshot. The cluster is only read, and not at all
// if there is a file.
func Simulate(ctx context.Context, s *session.Session, r Request) (result *report.Report, err error) {
	scenarios, err := r.Read(ctx)
	if err != nil {
		return nil, err
	}
	snap, err := capture.Open(ctx, s, r.Snapshot)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	servers, err := NewServers(s, "simulate")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, servers.Close()) }()
	m := Simulation{Scenarios: scenarios, Snapshot: snap, Timeout: r.Timeout, Prices: r.Prices, Removals: true}
	if result, err = m.compileAndRun(ctx, s, servers, r.Scheduler); err != nil {
		return nil, err
	}
	for _, baseline := range r.Against {
		var runs [2]*report.Report // ties are broken at random: differences between the two runs are noise
		for i := range runs {
			if runs[i], err = m.compileAndRun(ctx, s, servers, baseline); err != nil {
				return nil, fmt.Errorf("simulate %s: %w", baseline.Source, err)
			}
		}
		result.Comparison = report.NewComparison(result, runs[0], runs[1], baseline.Source)
		for _, note := range runs[0].Notes {
			if !slices.Contains(result.Notes, note) {
				result.Notes = append(result.Notes, baseline.Source+": "+note)
			}
		}
	}
	return result, nil
}

// Simulation runs scenarios on a snapshot, each on the state after the previous scenario.
type Simulation struct {
	Scenarios []scenario.Scenario
	Snapshot  *capture.Snapshot
	Timeout   time.Duration
	Prices    []report.Price
	// Removals also simulates that drained nodes are removed, if one of their pods has no node before.
	Removals bool
	// Undecided and Observer are as in [Options], for each scenario.
	Undecided bool
	Observer  Observer
}

func (m Simulation) compileAndRun(
	ctx context.Context, s *session.Session, servers *Servers, scheduler pack.Scheduler,
) (*report.Report, error) {
	p, err := Compile(ctx, s, scheduler, m.Snapshot.Header)
	if err != nil {
		return nil, err
	}
	return m.Run(ctx, servers, p)
}

// Run runs the scenarios.
func (m Simulation) Run(ctx context.Context, servers *Servers, p Programs) (result *report.Report, err error) {
	if m.Observer == nil {
		m.Observer = Unobserved{}
	}
	o := Options{Snapshot: m.Snapshot, Timeout: m.Timeout, Undecided: m.Undecided}
	var steps []*report.Report
	for i, sc := range m.Scenarios {
		o.Scenario, o.Observer, o.admits = sc, m.Observer, false
		if err := o.readClasses(); err != nil {
			return nil, err
		}
		var next *capture.State
		if i+1 < len(m.Scenarios) {
			if next, err = capture.NewState(servers.dir, m.Snapshot); err != nil {
				return nil, err
			}
			defer func() { err = errors.Join(err, next.Close()) }()
			o.Observer = stateReader{Observer: o.Observer, next: next}
		}
		step, err := servers.Run(ctx, p, o)
		if err != nil {
			return nil, err
		}
		if m.Removals && sc.Removal != nil && len(step.Unplaced) > 0 {
			o.Scenario, o.Observer = *sc.Removal, m.Observer
			removed, err := servers.Run(ctx, p, o)
			if err != nil {
				return nil, err
			}
			step.Removed = &report.Removed{Placements: removed.Placements, Unplaced: removed.Unplaced, Evicted: removed.Evicted}
		}
		steps, o.Snapshot = append(steps, step), next
		for _, added := range sc.Objects {
			if added.Kind.External {
				o.external = append(o.external, added)
			}
		}
	}
	result = report.Combine(steps)
	result.Programs = p.Origins
	result.Price(m.Prices)
	if release := p.Scheduler.Release; !release.Known() {
		result.Notes = append(result.Notes, "this pmk-sched does not know "+release.String()+": the rules of "+
			release.Nearest()+" were used")
	}
	result.Notes = append(result.Notes, ConsistencyNotes(m.Snapshot.Header)...)
	if slices.ContainsFunc(m.Scenarios, func(s scenario.Scenario) bool { return len(s.Workloads) > 0 }) {
		result.Notes = append(result.Notes, admissionNotes(m.Snapshot.Header)...)
	}
	return result, nil
}

// stateReader reads the state after a scenario, for the next one.
type stateReader struct {
	Observer
	next *capture.State
}

// Scheduled reads the state.
func (s stateReader) Scheduled(ctx context.Context, r *Run) error {
	if err := s.Observer.Scheduled(ctx, r); err != nil {
		return err
	}
	return s.next.Read(ctx, r.Session, r.Config())
}
