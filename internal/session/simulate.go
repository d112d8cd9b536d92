package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/archive"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/collect"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/diskqueue"
)

// SimulateRequest describes a simulation.
type SimulateRequest struct {
	// Steps are simulated one after the other, each in the state after the step before. Files are
	// relative to Dir; Stdin is read for "-".
	Steps []scenario.Step
	Dir   string
	Stdin io.Reader
	// Scheduler is simulated. Against is a scheduler to compare it with; it may be nil.
	Scheduler pack.Scheduler
	Against   *Baseline
	// Snapshot is the path of a snapshot. If it is empty, a snapshot of the cluster is taken.
	Snapshot string
	// Prices of nodes. They add costs to the figures.
	Prices []report.Price
	// Timeout bounds the time that the scheduler gets to decide about all pods of a step.
	Timeout time.Duration
	// Version of pmk-sched.
	Version string
}

// Baseline is a scheduler to compare with, and where it comes from: a file or default.
type Baseline struct {
	Scheduler pack.Scheduler
	Source    string
}

// Simulate runs scenarios with a scheduler on a snapshot. The cluster is only read, and not at all if there is a file.
func (s *Session) Simulate(ctx context.Context, r SimulateRequest) (*report.Report, error) {
	scenarios, err := readSteps(ctx, r)
	if err != nil {
		return nil, err
	}
	var result *report.Report
	err = s.withSnapshot(ctx, r.Snapshot, r.Version, func(h *snapshot.Header, objects simulate.Snapshot) (err error) {
		result, err = s.simulate(ctx, r, scenarios, h, objects)
		return err
	})
	return result, err
}

// withSnapshot calls use with the snapshot in a file, or with a new snapshot of the cluster if file
// is empty. version is the version of pmk-sched.
func (s *Session) withSnapshot(ctx context.Context, file, version string, use func(h *snapshot.Header, objects simulate.Snapshot) error) error {
	if file == "" {
		return s.takeSnapshot(ctx, SnapshotRequest{Version: version}, func(h *snapshot.Header, objects *diskqueue.Spool) error {
			return use(h, stored{h, objects})
		})
	}
	h, err := archived(file).header()
	if err != nil {
		return err
	}
	return use(h, archived(file))
}

// archived is a file with a snapshot.
type archived string

func (a archived) header() (h *snapshot.Header, err error) {
	err = a.read(func(r *archive.Reader) error {
		header := r.Header()
		h = &header
		return nil
	})
	return h, err
}

// Each implements [simulate.Snapshot].
func (a archived) Each(do func(kind *snapshot.Kind, version string, object map[string]any) error) error {
	return a.read(func(r *archive.Reader) error { return r.Each(do) })
}

func (a archived) read(use func(*archive.Reader) error) error {
	file, err := os.Open(string(a))
	if err != nil {
		return problem.Invalidf("", "read snapshot: %w", err)
	}
	defer file.Close()
	r, err := archive.NewReader(file, archive.Limits{})
	if err != nil {
		return err
	}
	return use(r)
}

// stored are the objects of a snapshot that is not a file.
type stored struct {
	header  *snapshot.Header
	objects *diskqueue.Spool
}

// Each implements [simulate.Snapshot].
func (s stored) Each(do func(kind *snapshot.Kind, version string, object map[string]any) error) error {
	kinds := snapshot.Kinds()
	for i := range s.header.Resources {
		r := &s.header.Resources[i]
		kind, version := snapshot.Find(kinds, snapshot.APIVersion(r.Group, r.Version), r.Kind)
		if kind == nil {
			continue // a custom kind, whose definition the simulation does not have
		}
		err := s.objects.Each(groupResource(r), func(_ string, text []byte) error {
			object, err := snapshot.Decode(text)
			if err != nil {
				return err
			}
			return do(kind, version, object)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// simulate compiles the programs and runs the scenarios.
func (s *Session) simulate(ctx context.Context, r SimulateRequest, scenarios []scenario.Scenario, h *snapshot.Header, objects simulate.Snapshot) (result *report.Report, err error) {
	sim := simulation{s: s, scenarios: scenarios, objects: objects, header: h, request: r}
	if sim.servers, err = s.newAPIServers("simulate"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sim.servers.Close()) }()
	result, err = sim.run(ctx, r.Scheduler)
	if err != nil {
		return nil, err
	}
	if r.Against == nil {
		return result, nil
	}
	var runs [2]*report.Report // ties are broken at random: differences between the two runs are noise
	for i := range runs {
		if runs[i], err = sim.run(ctx, r.Against.Scheduler); err != nil {
			return nil, fmt.Errorf("simulate %s: %w", r.Against.Source, err)
		}
	}
	result.Comparison = report.NewComparison(result, runs[0], runs[1], r.Against.Source)
	return result, nil
}

// simulation runs scenarios on a snapshot.
type simulation struct {
	s         *Session
	scenarios []scenario.Scenario
	objects   simulate.Snapshot
	header    *snapshot.Header
	request   SimulateRequest
	servers   *apiServers
}

// run runs the scenarios with a scheduler, which it has compiled.
func (m *simulation) run(ctx context.Context, scheduler pack.Scheduler) (*report.Report, error) {
	o, err := m.options(ctx, scheduler)
	if err != nil {
		return nil, err
	}
	return m.runSteps(ctx, o)
}

// runSteps runs the scenarios, each on the state after the previous scenario.
func (m *simulation) runSteps(ctx context.Context, o simulate.Options) (result *report.Report, err error) {
	o.Snapshot = m.objects
	var steps []*report.Report
	for i, sc := range m.scenarios {
		if o.Dir, err = m.servers.newDir(); err != nil {
			return nil, err
		}
		o.Scenario, o.After = sc, nil
		var next stored
		if i+1 < len(m.scenarios) {
			if next.objects, err = diskqueue.New(o.Dir); err != nil {
				return nil, err
			}
			defer func() { err = errors.Join(err, next.objects.Close()) }()
			o.After = func(ctx context.Context, cfg *rest.Config) (err error) {
				next.header, err = m.readState(ctx, cfg, next.objects)
				return err
			}
		}
		server, err := m.servers.server(ctx, o)
		if err != nil {
			return nil, err
		}
		step, err := server.Run(ctx, o)
		if err != nil {
			return nil, err
		}
		steps = append(steps, step)
		o.Snapshot = aged{next, m.objects}
	}
	result = report.Combine(steps)
	result.Price(m.request.Prices)
	if !m.header.Consistent {
		result.Notes = append(result.Notes, "the objects of the snapshot may be of several moments")
	}
	return result, nil
}

// readState reads the objects of a simulation for the next step.
func (m *simulation) readState(ctx context.Context, cfg *rest.Config, objects *diskqueue.Spool) (*snapshot.Header, error) {
	h := &snapshot.Header{}
	err := m.s.Step("read the state", func() error {
		read, err := collect.Cluster(ctx, cfg, snapshot.Kinds(), objects, collect.Options{Pods: &h.Pods, Log: m.s.Log})
		if err != nil {
			return err
		}
		h.Resources = read.Resources
		return nil
	})
	sortObjects(h, objects)
	return h, err
}

// aged are the objects of a simulation. Pods get the creation time of the pod of the same name in
// the snapshot, because the age decides about the order of pods.
type aged struct {
	stored
	snapshot simulate.Snapshot
}

// Each implements [simulate.Snapshot].
func (a aged) Each(do func(kind *snapshot.Kind, version string, object map[string]any) error) error {
	created := map[string]any{} // of pods
	err := a.snapshot.Each(func(kind *snapshot.Kind, _ string, o map[string]any) error {
		metadata, _ := o["metadata"].(map[string]any)
		if kind.Name != "Pod" || metadata["creationTimestamp"] == nil {
			return nil
		}
		key, err := kind.Key(o)
		created[key] = metadata["creationTimestamp"]
		return err
	})
	if err != nil {
		return err
	}
	return a.stored.Each(func(kind *snapshot.Kind, version string, o map[string]any) error {
		if kind.Name == "Pod" {
			key, err := kind.Key(o)
			if err != nil {
				return err
			}
			if metadata, _ := o["metadata"].(map[string]any); created[key] != nil {
				metadata["creationTimestamp"] = created[key]
			}
		}
		return do(kind, version, o)
	})
}
