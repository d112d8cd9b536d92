package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/capture"
)

// Request describes a measurement.
type Request struct {
	simulate.Input
	// Nodes is the number of identical nodes. If it is 0, the snapshot's nodes are used.
	Nodes int
	// Pods is the number of identical pods to schedule.
	Pods int
	// Samples is the number of measurements for each scheduler.
	Samples int
}

// Run measures how fast schedulers bind pods. The cluster is only read, and not at all with a
// file or with identical nodes.
func Run(ctx context.Context, s *session.Session, r Request) (_ *Result, err error) {
	w := alike(r.Nodes, r.Pods)
	snap := &capture.Snapshot{Header: &snapshot.Header{}, Objects: &scenario.Objects{}}
	switch {
	case r.Nodes == 0:
		if snap, err = capture.Open(ctx, s, r.Snapshot); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, snap.Close()) }()
	case r.Scheduler.Branch == pack.BranchAuto:
		return nil, problem.Invalidf("specify it, for example --branch v1.24.3",
			"--nodes needs the release of the scheduler")
	}
	r.Scheduler.Source = "this"
	var all []*competitor
	for _, scheduler := range append([]pack.Scheduler{r.Scheduler}, r.Against...) {
		c := &competitor{source: scheduler.Source}
		if c.programs, err = simulate.Compile(ctx, s, scheduler, snap.Header); err != nil {
			return nil, fmt.Errorf("measure %s: %w", c.source, err)
		}
		all = append(all, c)
	}
	for i := range r.Samples { // in turn, so that other load on the machine affects all schedulers
		for _, c := range all {
			s.Note(fmt.Sprintf("sample %d of %d: %s", i+1, r.Samples, c.source))
			sample, notes, err := measure(ctx, s, c.programs, simulate.Options{Snapshot: snap, Timeout: r.Timeout}, w)
			if err != nil {
				return nil, fmt.Errorf("measure %s: %w", c.source, err)
			}
			c.samples, c.notes = append(c.samples, *sample), notes
		}
	}
	return compare(w, all), nil
}

// compare compares the first competitor with the others.
func compare(w *Workload, all []*competitor) *Result {
	var sides []Side
	for _, c := range all {
		scheduler := c.programs.Scheduler
		sides = append(sides, newSide(c.source, scheduler.Request.Name, scheduler.Release.String(), c.samples))
	}
	result := newResult(w.Name, sides[0], sides[1:]...)
	for _, c := range all {
		for _, note := range c.notes {
			result.Notes = append(result.Notes, c.source+": "+note)
		}
	}
	return result
}

// competitor is a scheduler that is measured.
type competitor struct {
	source   string
	programs simulate.Programs
	samples  []Sample
	// notes are the measured scheduler's differences from a deployed one.
	notes []string
}
