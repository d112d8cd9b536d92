package simulate

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/capture"
)

// Simulation is a scheduler in scenarios on a snapshot, each on the state after the previous one.
// It keeps the results of its runs.
type Simulation struct {
	Programs  Programs
	Snapshot  *capture.Snapshot
	Scenarios []scenario.Scenario
	Timeout   time.Duration
	Prices    []report.Price
	// Removals also simulates that drained nodes are removed, if one of their pods has no node before.
	Removals bool
	// Undecided and Observer are as in [Options], for each scenario.
	Undecided bool
	Observer  Observer

	results []*report.Report
}

// Runs runs simulations, as many at the same time as it has API servers, and keeps programs.
type Runs struct {
	free     chan *Servers
	programs map[string]Programs
}

// NewRuns returns runs on API servers, which the caller closes.
func NewRuns(servers ...*Servers) *Runs {
	r := &Runs{free: make(chan *Servers, len(servers)), programs: map[string]Programs{}}
	for _, s := range servers {
		r.free <- s
	}
	return r
}

// Compile is [Compile], once for each scheduler and release. It is not for use by several
// goroutines.
func (r *Runs) Compile(
	ctx context.Context, s *session.Session, scheduler pack.Scheduler, h *snapshot.Header,
) (Programs, error) {
	release, err := ReleaseOf(ctx, s, scheduler.Branch, h)
	if err != nil {
		return Programs{}, err
	}
	key := strings.Join([]string{release.String(), scheduler.Source, scheduler.Configuration.Preset}, "\x00")
	if p, ok := r.programs[key]; ok {
		return p, nil
	}
	p, err := Compile(ctx, s, scheduler, h)
	if err == nil {
		r.programs[key] = p
	}
	return p, err
}

// Start starts an API server for a scheduler's release, so that the next run need not do so.
func (r *Runs) Start(ctx context.Context, p Programs, objects capture.Objects) error {
	servers := <-r.free
	defer func() { r.free <- servers }()
	return servers.start(ctx, p, objects)
}

// Results returns the results of a simulation's first n runs. It runs the simulation as often as it
// has not run yet.
func (r *Runs) Results(ctx context.Context, m *Simulation, n int) ([]*report.Report, error) {
	for len(m.results) < n {
		servers := <-r.free
		result, err := m.run(ctx, servers)
		r.free <- servers
		if err != nil {
			return nil, err
		}
		m.results = append(m.results, result)
	}
	return m.results[:n], nil
}

// run runs the scenarios.
func (m *Simulation) run(ctx context.Context, servers *Servers) (result *report.Report, err error) {
	observer := cmp.Or[Observer](m.Observer, Unobserved{})
	o := Options{Snapshot: m.Snapshot, Timeout: m.Timeout, Undecided: m.Undecided}
	var steps []*report.Report
	for i, sc := range m.Scenarios {
		o.Scenario, o.Observer, o.admits = sc, observer, false
		if err := o.readClasses(); err != nil {
			return nil, err
		}
		var next *capture.State
		if i+1 < len(m.Scenarios) {
			if next, err = capture.NewState(servers.dir, m.Snapshot); err != nil {
				return nil, err
			}
			defer func() { err = errors.Join(err, next.Close()) }()
			o.Observer = stateReader{Observer: observer, next: next}
		}
		step, err := servers.Run(ctx, m.Programs, o)
		if err != nil {
			return nil, err
		}
		if m.Removals && sc.Removal != nil && len(step.Unplaced) > 0 {
			o.Scenario, o.Observer = *sc.Removal, observer
			removed, err := servers.Run(ctx, m.Programs, o)
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
	return m.combine(steps), nil
}

// combine returns the result of the scenarios.
func (m *Simulation) combine(steps []*report.Report) *report.Report {
	result := report.Combine(steps)
	result.Programs = m.Programs.Origins
	result.Price(m.Prices)
	if release := m.Programs.Scheduler.Release; !release.Known() {
		result.Notes = append(result.Notes, "this pmk-sched does not know "+release.String()+": the rules of "+
			release.Nearest()+" were used")
	}
	result.Notes = append(result.Notes, ConsistencyNotes(m.Snapshot.Header)...)
	if slices.ContainsFunc(m.Scenarios, func(s scenario.Scenario) bool { return len(s.Workloads) > 0 }) {
		result.Notes = append(result.Notes, admissionNotes(m.Snapshot.Header)...)
	}
	return result
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
