package trials

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/ties"
	"github.com/pmk-sched/pmk-sched/internal/foresight/tune"
)

// pool runs simulations on API servers of its own, one for each that runs at the same time.
type pool struct {
	s         *session.Session
	r         Request
	scenarios []scenario.Scenario
	ties      *ties.Breaker
	servers   []*simulate.Servers

	mu          sync.Mutex
	notes       []string
	simulations int
	scheduling  float64 // seconds
}

// newPool returns a pool without running API servers. Close it.
func newPool(
	ctx context.Context, s *session.Session, r Request, scenarios []scenario.Scenario,
) (p *pool, err error) {
	p = &pool{s: s, r: r, scenarios: scenarios}
	if p.ties, err = ties.Start(r.Seed); err != nil {
		return nil, err
	}
	for range r.Parallel {
		servers, err := simulate.NewServers(s.Quiet(), "tune")
		if err != nil {
			return nil, errors.Join(err, p.close(ctx))
		}
		p.servers = append(p.servers, servers)
	}
	return p, nil
}

func (p *pool) close(ctx context.Context) error {
	all := []error{p.ties.Close(ctx)}
	for _, servers := range p.servers {
		all = append(all, servers.Close())
	}
	return errors.Join(all...)
}

// job is a simulation.
type job struct{ candidate, world int }

// try returns a trial for each candidate, with its mean figures. A simulation that fails ends the
// trial only, unless it was interrupted.
func (p *pool) try(ctx context.Context, x *space, next []tune.Candidate, worlds []*world) ([]tune.Trial, error) {
	figures, failures := make([][]tune.Figures, len(next)), make([]error, len(next))
	first, err := x.firstEqual(next)
	if err != nil {
		return nil, err
	}
	jobs := make(chan job)
	var wait sync.WaitGroup
	for _, servers := range p.servers {
		wait.Go(func() {
			for j := range jobs {
				f, err := p.simulate(ctx, servers, x, next[j.candidate], worlds[j.world])
				p.mu.Lock()
				figures[j.candidate][j.world] = f
				failures[j.candidate] = errors.Join(failures[j.candidate], err)
				p.mu.Unlock()
			}
		})
	}
	for w := range worlds { // simulations of one release follow each other on an API server
		for c := range next {
			if figures[c] == nil {
				figures[c] = make([]tune.Figures, len(worlds))
			}
			if ctx.Err() == nil && first[c] == c {
				jobs <- job{c, w}
			}
		}
	}
	close(jobs)
	wait.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	trials := make([]tune.Trial, len(next))
	for i, c := range next {
		trials[i] = tune.Trial{Candidate: c}
		if err := failures[first[i]]; err != nil {
			trials[i].Error, _, _ = strings.Cut(err.Error(), "\n") // the logs of programs follow
		} else {
			trials[i].BySnapshot = figures[first[i]]
			trials[i].Figures = tune.Mean(trials[i].BySnapshot)
		}
	}
	return trials, nil
}

// simulate returns the figures of a candidate on a snapshot.
func (p *pool) simulate(
	ctx context.Context, servers *simulate.Servers, x *space, c tune.Candidate, w *world,
) (tune.Figures, error) {
	configuration, err := x.configuration(c).BreakTies(p.ties.URLs(w.nodes+p.added()), ties.Verb)
	if err != nil {
		return nil, err
	}
	programs := w.programs
	request := &programs.Scheduler.Request
	request.Preset, request.Configuration, request.ConfigurationName = "", configuration, c.Name
	m := simulate.Simulation{Scenarios: p.scenarios, Snapshot: w.Snapshot, Timeout: p.r.Timeout, Prices: p.r.Prices}
	result, err := m.Run(ctx, servers, programs)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", w.name, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.simulations++
	p.scheduling += result.Summary.ScheduleSeconds
	p.note(w, result)
	return tune.Measure(p.r.Objectives, result), nil
}

// added returns how many nodes the scenario adds at most.
func (p *pool) added() int {
	added := 0
	for _, step := range p.r.Steps {
		for _, add := range step.Add {
			added += add.Count
		}
	}
	return added
}

func (p *pool) note(w *world, result *report.Report) {
	for _, note := range result.Notes {
		if note = w.name + ": " + note; !slices.Contains(p.notes, note) {
			p.notes = append(p.notes, note)
		}
	}
}

func (p *pool) collected() []string {
	slices.Sort(p.notes)
	return append([]string{}, p.notes...)
}
