package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/tempdir"
	"github.com/pmk-sched/pmk-sched/internal/foresight/bench"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// BenchRequest describes a measurement.
type BenchRequest struct {
	// Scheduler is compared with the schedulers of Against.
	Scheduler pack.Scheduler
	Against   []Baseline
	// Snapshot is a file with the nodes. If it is empty, the nodes of the cluster are read. If
	// Nodes is above 0, there is no snapshot, but this number of identical nodes.
	Snapshot string
	Nodes    int
	// Pods is the number of identical pods to schedule. Instead, Workload is a file of
	// scheduler_perf, and Case the workload in it, with its own nodes.
	Pods           int
	Workload, Case string
	// Samples is how often to measure each scheduler.
	Samples int
	// Timeout bounds the time that a scheduler gets for one sample.
	Timeout time.Duration
	// Version of pmk-sched.
	Version string
}

// Bench measures how fast schedulers bind pods. The cluster is only read, and not at all with a
// file or with identical nodes.
func (s *Session) Bench(ctx context.Context, r BenchRequest) (result *bench.Result, err error) {
	w := bench.Alike(r.Nodes, r.Pods)
	if r.Workload != "" {
		if w, err = readWorkload(r.Workload, r.Case); err != nil {
			return nil, err
		}
	}
	if r.Nodes == 0 && r.Workload == "" {
		err = s.withSnapshot(ctx, r.Snapshot, r.Version, func(h *snapshot.Header, objects simulate.Snapshot) (err error) {
			result, err = s.bench(ctx, r, w, h, objects)
			return err
		})
		return result, err
	}
	if r.Scheduler.Branch == pack.BranchAuto {
		return nil, problem.Invalidf("specify it, for example --branch v1.24.3", "--nodes and --workload need the release of the scheduler")
	}
	return s.bench(ctx, r, w, &snapshot.Header{}, nothing{})
}

// readWorkload reads a workload of scheduler_perf. The paths of templates are relative to the file, or, up to 1.30, to the directory above.
func readWorkload(file, which string) (*bench.Workload, error) {
	text, err := problem.ReadFile("workload", file)
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(file)
	return bench.ParsePerf(file, text, which, func(path string) ([]byte, error) {
		text, err := problem.ReadFile("template", filepath.Join(dir, path))
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return text, err
		}
		return problem.ReadFile("template", filepath.Join(filepath.Dir(dir), path))
	})
}

// nothing is a snapshot without objects.
type nothing struct{}

// Each implements [simulate.Snapshot].
func (nothing) Each(func(*snapshot.Kind, string, map[string]any) error) error { return nil }

// measured is one of the schedulers.
type measured struct {
	source  string
	options simulate.Options
	samples []bench.Sample
}

func (m *measured) side() bench.Side {
	return bench.NewSide(m.source, m.options.Scheduler.Name, m.options.Scheduler.Release.String(), m.samples)
}

// bench compiles the programs and takes the samples in turn, so that other load on the machine
// affects all schedulers.
func (s *Session) bench(ctx context.Context, r BenchRequest, w *bench.Workload, h *snapshot.Header, objects simulate.Snapshot) (_ *bench.Result, err error) {
	sim := simulation{s: s, objects: objects, header: h, request: SimulateRequest{Timeout: r.Timeout}}
	var all []*measured
	for _, b := range append([]Baseline{{Source: "this", Scheduler: r.Scheduler}}, r.Against...) {
		m := &measured{source: b.Source}
		if m.options, err = sim.options(ctx, b.Scheduler); err != nil {
			return nil, fmt.Errorf("measure %s: %w", m.source, err)
		}
		m.options.Snapshot = objects
		all = append(all, m)
	}
	for i := range r.Samples {
		for _, m := range all {
			s.Note(fmt.Sprintf("sample %d of %d: %s", i+1, r.Samples, m.source))
			if err := m.measure(ctx, w); err != nil {
				return nil, fmt.Errorf("measure %s: %w", m.source, err)
			}
		}
	}
	var sides []bench.Side
	for _, m := range all {
		sides = append(sides, m.side())
	}
	result := bench.New(w.Name, sides[0], sides[1:]...)
	result.Notes = append(result.Notes, w.Notes...)
	return result, nil
}

// measure takes one sample.
func (m *measured) measure(ctx context.Context, w *bench.Workload) (err error) {
	dir, remove, err := tempdir.Make("bench")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	o := m.options
	o.Dir = dir
	sample, err := simulate.Measure(ctx, o, w)
	if err == nil {
		m.samples = append(m.samples, *sample)
	}
	return err
}
