package matrix

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
)

// Run simulates each scheduler on each snapshot in each scenario. A simulation that fails has an
// error in the result. The cluster is not used, except for the Job.
func Run(ctx context.Context, s *session.Session, r Request) (result *Result, err error) {
	e, err := open(ctx, s, r)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	cells := planCells(r, e.plan.prepared)
	outcomes, err := e.runner.run(ctx, s, cells)
	if outcomes == nil {
		return nil, err
	}
	result = &Result{}
	for i, o := range outcomes {
		cell := cells[i].name
		cell.Outcome = o
		result.Cells = append(result.Cells, cell)
	}
	return result, err
}

// engine has a plan, and runs its simulations. Close it.
type engine struct {
	plan   *plan
	runner runner
	remove func() error // removes the files of the plan
}

// runner runs the simulations in a plan: on this machine, or on a cluster.
type runner interface {
	run(ctx context.Context, s *session.Session, cells []plannedCell) ([]Outcome, error)
	close() error
}

// starter returns a runner for a plan that runs up to parallel simulations at the same time. dir is
// a private directory.
type starter func(ctx context.Context, s *session.Session, p *plan, parallel int, dir string) (runner, error)

// open compiles the programs and reads the files in a request.
func open(ctx context.Context, s *session.Session, r Request) (e *engine, err error) {
	start := startHere
	if r.Job != nil {
		if start, err = r.Job.connect(s); err != nil {
			return nil, err
		}
	}
	dir, remove, err := safeio.MakeTemp("matrix")
	if err != nil {
		return nil, err
	}
	e = &engine{remove: remove}
	if e.plan, err = newPlan(ctx, s, r, dir); err == nil {
		e.runner, err = start(ctx, s, e.plan, r.Parallel, dir)
	}
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	return e, nil
}

func (e *engine) close() error { return errors.Join(e.runner.close(), e.remove()) }

// here runs simulations on this machine, as many at the same time as it has API servers.
type here struct {
	plan *plan
	all  []*simulate.Servers
}

// startHere is a [starter].
func startHere(_ context.Context, s *session.Session, p *plan, parallel int, _ string) (runner, error) {
	h := &here{plan: p}
	for range parallel {
		servers, err := simulate.NewServers(s.Quiet(), "simulate")
		if err != nil {
			return nil, errors.Join(err, h.close())
		}
		h.all = append(h.all, servers)
	}
	return h, nil
}

func (h *here) close() error {
	var failed []error
	for _, servers := range h.all {
		failed = append(failed, servers.Close())
	}
	return errors.Join(failed...)
}

func (h *here) run(ctx context.Context, s *session.Session, cells []plannedCell) ([]Outcome, error) {
	outcomes := make([]Outcome, len(cells))
	runs := simulate.NewRuns(h.all...)
	var running errgroup.Group
	running.SetLimit(len(h.all))
	for i, cell := range cells {
		running.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			done := s.OnStep("simulate " + cell.name.String())
			result, err := h.plan.simulate(ctx, runs, cell)
			done(err)
			outcomes[i] = NewOutcome(result, err)
			return nil
		})
	}
	if running.Wait() != nil || ctx.Err() != nil {
		return nil, fmt.Errorf("simulate: %w", ctx.Err())
	}
	return outcomes, nil
}
