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
	runs := NewRuns(servers)
	simulate := func(scheduler pack.Scheduler, n int) ([]*report.Report, error) {
		p, err := Compile(ctx, s, scheduler, snap.Header)
		if err != nil {
			return nil, err
		}
		return runs.Results(ctx, &Simulation{Programs: p, Scenarios: scenarios, Snapshot: snap, Timeout: r.Timeout,
			Prices: r.Prices, Removals: true}, n)
	}
	own, err := simulate(r.Scheduler, 1)
	if err != nil {
		return nil, err
	}
	result = own[0]
	for _, baseline := range r.Against {
		others, err := simulate(baseline, 2) // ties are broken at random: differences between the two runs are noise
		if err != nil {
			return nil, fmt.Errorf("simulate %s: %w", baseline.Source, err)
		}
		result.Comparison = report.NewComparison(result, others[0], others[1], baseline.Source)
		for _, note := range others[0].Notes {
			if !slices.Contains(result.Notes, note) {
				result.Notes = append(result.Notes, baseline.Source+": "+note)
			}
		}
	}
	return result, nil
}
