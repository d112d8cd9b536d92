package policytest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/expect"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
)

// mostRuns is the greatest number of runs by each of two schedulers to find ties: schedulers break
// them at random. A pod that has the same score on three nodes seems to differ after so many runs
// with a probability of 0.3 %.
const mostRuns = 5

// engine runs simulations and keeps their results.
type engine struct {
	s       *session.Session
	servers *simulate.Servers
	timeout time.Duration
	// programs by scheduler and release.
	programs map[string]simulate.Programs
	results  []*repeated
}

// repeated is a simulation that may run several times.
type repeated struct {
	world     *world
	scheduler string
	steps     string
	runs      []*report.Report
}

// forget removes the results, which no later test needs.
func (e *engine) forget() { e.results = nil }

// run runs a test on a cluster at a release.
func (e *engine) run(ctx context.Context, r Request, t *test, w *world, branch string) (*Result, error) {
	own, err := e.compile(ctx, r.Scheduler, w, branch)
	if err != nil {
		return nil, err
	}
	if err := e.servers.Start(ctx, own, w); err != nil {
		return nil, err
	}
	begin := time.Now()
	result := &Result{Test: t.file, Snapshot: w.name, Release: own.Scheduler.Release.String(), Notes: w.notes}
	for i := range t.Expect {
		x := &t.Expect[i]
		first, err := e.simulate(ctx, w, own, t.steps[i], 1)
		if err != nil {
			return nil, fmt.Errorf("at %s: %w", result.Release, err)
		}
		var outcome expect.Outcome
		if x.SameAs == nil {
			outcome = expect.Check(x, first[0])
		} else {
			var notes []string
			if outcome, notes, err = e.compare(ctx, r, t, i, w, own); err != nil {
				return nil, fmt.Errorf("compare with %s: %w", expect.Baseline(x.SameAs), err)
			}
			for _, note := range notes {
				if !slices.Contains(first[0].Notes, note) {
					result.Notes = append(result.Notes, expect.Baseline(x.SameAs)+": "+note)
				}
			}
		}
		result.Expectations = append(result.Expectations, outcome)
		result.Notes = append(result.Notes, first[0].Notes...)
	}
	slices.Sort(result.Notes)
	result.Notes = slices.Compact(result.Notes)
	result.Seconds = time.Since(begin).Seconds()
	return result, nil
}

// compile returns a scheduler's programs at a release, by default the snapshot's or the cluster's
// release.
func (e *engine) compile(
	ctx context.Context, scheduler pack.Scheduler, w *world, branch string,
) (simulate.Programs, error) {
	scheduler.Branch = cmp.Or(branch, pack.BranchAuto)
	if w.Header.Release == "" && w.name == "" {
		var err error
		if scheduler.Branch, err = clusterRelease(e.s, branch); err != nil {
			return simulate.Programs{}, err
		}
	}
	release, err := simulate.ReleaseOf(ctx, e.s, scheduler.Branch, w.Header)
	if err != nil {
		return simulate.Programs{}, err
	}
	key := strings.Join([]string{release.String(), scheduler.Source, scheduler.Configuration.Preset}, "\x00")
	if p, ok := e.programs[key]; ok {
		return p, nil
	}
	p, err := simulate.Compile(ctx, e.s, scheduler, w.Header)
	if err == nil {
		e.programs[key] = p
	}
	return p, err
}

// compare compares the scheduler with another, and returns the other's notes. It repeats the
// simulations while pods differ.
func (e *engine) compare(
	ctx context.Context, r Request, t *test, index int, w *world, own simulate.Programs,
) (outcome expect.Outcome, notes []string, err error) {
	x := &t.Expect[index]
	scheduler, err := t.baseline(r, x.SameAs)
	if err != nil {
		return outcome, nil, err
	}
	other, err := e.compile(ctx, scheduler, w, cmp.Or(x.SameAs.Branch, own.Scheduler.Release.String()))
	if err != nil {
		return outcome, nil, err
	}
	for n := 1; ; n++ {
		ours, err := e.simulate(ctx, w, own, t.steps[index], n)
		if err != nil {
			return outcome, nil, err
		}
		theirs, err := e.simulate(ctx, w, other, t.steps[index], n)
		if err != nil {
			return outcome, nil, err
		}
		if outcome := expect.Same(x, ours, theirs); outcome.Met || n == mostRuns {
			return outcome, theirs[0].Notes, nil
		}
	}
}

// simulate returns the results from a simulation's first n runs.
func (e *engine) simulate(
	ctx context.Context, w *world, p simulate.Programs, steps []scenario.Step, n int,
) ([]*report.Report, error) {
	key, err := keyOf(steps)
	if err != nil {
		return nil, err
	}
	scheduler := strings.Join([]string{p.Scheduler.Release.String(), p.Scheduler.Program, p.Scheduler.Request.Source,
		p.Scheduler.Request.Configuration.Preset}, "\x00")
	at := slices.IndexFunc(e.results, func(r *repeated) bool {
		return r.world == w && r.steps == key && r.scheduler == scheduler
	})
	if at < 0 {
		at, e.results = len(e.results), append(e.results, &repeated{world: w, scheduler: scheduler, steps: key})
	}
	found := e.results[at]
	for len(found.runs) < n {
		scenarios, err := simulate.Script{Steps: steps}.Read(ctx)
		if err != nil {
			return nil, err
		}
		m := simulate.Simulation{Scenarios: scenarios, Snapshot: w.Snapshot, Timeout: e.timeout, Undecided: true,
			Observer: w.observer}
		result, err := m.Run(ctx, e.servers, p)
		if err != nil {
			return nil, err
		}
		found.runs = append(found.runs, result)
	}
	return found.runs[:n], nil
}

// baseline returns the scheduler in sameAs.
func (t *test) baseline(r Request, s *v1alpha1.SameAs) (scheduler pack.Scheduler, err error) {
	scheduler = r.Scheduler
	if source := s.Scheduler; source != "" {
		if source != v1alpha1.DefaultScheduler {
			source = t.path(source)
		}
		if scheduler, err = r.Baseline(source); err != nil {
			return scheduler, err
		}
	}
	if s.Preset != "" {
		c := &scheduler.Configuration
		c.Preset, c.Source, c.SourceName = s.Preset, nil, ""
	}
	return scheduler, nil
}
