package policytest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
)

// mostRuns is the greatest number of runs by each of two schedulers to find ties: schedulers break
// them at random. A pod that has the same score on three nodes seems to differ after so many runs
// with a probability of 0.3 %.
const mostRuns = 5

// engine runs simulations and keeps them with their results.
type engine struct {
	s       *session.Session
	runs    *simulate.Runs
	timeout time.Duration
	kept    map[simulation]*simulate.Simulation
}

// simulation identifies a simulation in a run of tests.
type simulation struct {
	world            *world
	scheduler, steps string
}

// run runs a test on a cluster at a release.
func (e *engine) run(ctx context.Context, r Request, t *test, w *world, branch string) (*Result, error) {
	own, err := e.compile(ctx, r.Scheduler, w, branch)
	if err != nil {
		return nil, err
	}
	if err := e.runs.Start(ctx, own, w); err != nil {
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
		var outcome Outcome
		if x.SameAs == nil {
			outcome = check(x, first[0])
		} else {
			var notes []string
			if outcome, notes, err = e.compare(ctx, r, t, i, w, own); err != nil {
				return nil, fmt.Errorf("compare with %s: %w", baselineName(x.SameAs), err)
			}
			for _, note := range notes {
				if !slices.Contains(first[0].Notes, note) {
					result.Notes = append(result.Notes, baselineName(x.SameAs)+": "+note)
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
) (p simulate.Programs, err error) {
	scheduler.Branch = cmp.Or(branch, pack.BranchAuto)
	if w.Header.Release == "" && w.name == "" {
		if scheduler.Branch, err = clusterRelease(e.s, branch); err != nil {
			return p, err
		}
	}
	return e.runs.Compile(ctx, e.s, scheduler, w.Header)
}

// compare compares the scheduler with another, and returns the other's notes. It repeats the
// simulations while pods differ.
func (e *engine) compare(
	ctx context.Context, r Request, t *test, index int, w *world, own simulate.Programs,
) (outcome Outcome, notes []string, err error) {
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
		if outcome := same(x, ours, theirs); outcome.Met || n == mostRuns {
			return outcome, theirs[0].Notes, nil
		}
	}
}

// simulate returns the results from a simulation's first n runs.
func (e *engine) simulate(
	ctx context.Context, w *world, p simulate.Programs, steps []scenario.Step, n int,
) ([]*report.Report, error) {
	text, err := json.Marshal(steps)
	if err != nil {
		return nil, err
	}
	key := simulation{world: w, steps: string(text), scheduler: strings.Join([]string{p.Scheduler.Release.String(),
		p.Scheduler.Program, p.Scheduler.Request.Source, p.Scheduler.Request.Configuration.Preset}, "\x00")}
	if e.kept[key] == nil {
		scenarios, err := simulate.Script{Steps: steps}.Read(ctx)
		if err != nil {
			return nil, err
		}
		e.kept[key] = &simulate.Simulation{Programs: p, Scenarios: scenarios, Snapshot: w.Snapshot, Timeout: e.timeout,
			Undecided: true, Observer: w.observer}
	}
	return e.runs.Results(ctx, e.kept[key], n)
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
