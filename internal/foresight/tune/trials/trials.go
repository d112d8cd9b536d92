// Package trials tries settings of a scheduler by simulations, for the search of package tune.
package trials

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/capture"
	"github.com/pmk-sched/pmk-sched/internal/foresight/tune"
	"github.com/pmk-sched/pmk-sched/profiles"
)

// Request describes a search.
type Request struct {
	// Scheduler has today's configuration.
	Scheduler pack.Scheduler
	// Snapshots are for the search. The figures of HeldOut are shown next to it. If there are none,
	// the last third of several Snapshots is held out.
	Snapshots, HeldOut []string
	Stdin              io.Reader
	// Script is the scenario, and ScenarioName its name.
	simulate.Script
	ScenarioName string
	Objectives   []tune.Objective
	Prices       []report.Price
	// Trials is the number of configurations to try, Parallel the number of simulations at the same
	// time. Each of them has an API server.
	Trials, Parallel int
	Seed             uint64
	// Timeout bounds the time that a scheduler gets to decide about all pods of a step.
	Timeout time.Duration
	// Version of pmk-sched.
	Version string
}

// world is a snapshot with the programs of its release.
type world struct {
	*capture.Snapshot
	name     string
	programs simulate.Programs
	nodes    int
	// images reports whether nodes list images.
	images bool
	// resources are the extended resources that pods request.
	resources []string
}

// Run searches. The cluster is not used.
func Run(ctx context.Context, s *session.Session, r Request) (result *tune.Result, err error) {
	if n := len(r.Snapshots); n > 1 && len(r.HeldOut) == 0 {
		seen := n - max(1, n/3)
		r.Snapshots, r.HeldOut = r.Snapshots[:seen], r.Snapshots[seen:]
	}
	scenarios, err := r.Read(ctx)
	if err != nil {
		return nil, err
	}
	search, err := open(ctx, s, r, r.Snapshots)
	defer func() { err = errors.Join(err, closeAll(search)) }()
	if err != nil {
		return nil, err
	}
	heldOut, err := open(ctx, s, r, r.HeldOut)
	defer func() { err = errors.Join(err, closeAll(heldOut)) }()
	if err != nil {
		return nil, err
	}
	all := slices.Concat(search, heldOut)
	space, err := newSpace(r.Scheduler, all)
	if err != nil {
		return nil, err
	}
	p, err := newPool(ctx, s, r, scenarios)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.close(ctx)) }()
	return p.search(ctx, r, space, search, heldOut)
}

func open(ctx context.Context, s *session.Session, r Request, paths []string) (all []*world, err error) {
	for _, path := range paths {
		snap, err := capture.Open(ctx, s, capture.Request{From: []string{path}, Stdin: r.Stdin, Version: r.Version})
		if err != nil {
			return all, err
		}
		w := &world{Snapshot: snap, name: path}
		all = append(all, w)
		if w.programs, err = simulate.Compile(ctx, s, r.Scheduler, snap.Header); err != nil {
			return all, fmt.Errorf("snapshot %s: %w", path, err)
		}
		if err := w.count(); err != nil {
			return all, err
		}
		if w.nodes == 0 {
			return all, problem.Invalidf("", "snapshot %s has no nodes", path)
		}
	}
	return all, nil
}

func closeAll(all []*world) error {
	var found []error
	for _, w := range all {
		found = append(found, w.Close())
	}
	return errors.Join(found...)
}

// count counts the nodes, and finds the extended resources that pods can request.
func (w *world) count() error {
	return w.Each(func(kind *snapshot.Kind, _ string, o map[string]any) error {
		if kind.Name != "Node" {
			return nil
		}
		w.nodes++
		status, _ := o["status"].(map[string]any)
		images, _ := status["images"].([]any)
		w.images = w.images || len(images) > 0
		allocatable, _ := status["allocatable"].(map[string]any)
		for name, amount := range allocatable {
			if isExtended(name) && fmt.Sprint(amount) != "0" && !slices.Contains(w.resources, name) {
				w.resources = append(w.resources, name)
			}
		}
		return nil
	})
}

// search runs the search and evaluates its points on the snapshots that were held out.
func (p *pool) search(ctx context.Context, r Request, space *space, seen, heldOut []*world) (*tune.Result, error) {
	given := space.given()
	s := tune.Search{Settings: space.settings, Objectives: r.Objectives, Seed: r.Seed, Trials: r.Trials}
	done := 0
	begin := time.Now()
	trials, err := s.Run(given, func(next []tune.Candidate) (all []tune.Trial, err error) {
		name := fmt.Sprintf("trials %d to %d of %d", done+1, done+len(next), max(r.Trials, len(given)))
		err = p.s.Step(name, func() error {
			all, err = p.try(ctx, space, next, seen)
			return err
		})
		done += len(next)
		return all, err
	})
	if err != nil {
		return nil, err
	}
	if trials[0].Figures == nil {
		return nil, fmt.Errorf("simulate today's configuration: %s", trials[0].Error)
	}
	first := seen[0].programs
	result := &tune.Result{
		Release: first.Scheduler.Release.String(), Scheduler: first.Scheduler.Request.Name, Scenario: r.ScenarioName,
		Seed: r.Seed, Snapshots: r.Snapshots, HeldOut: append([]string{}, r.HeldOut...), Objectives: r.Objectives,
		Settings: space.settings, Points: tune.NewPoints(r.Objectives, trials, len(given)), Trials: trials,
		Programs: first.Origins, Unknown: unknown(len(heldOut)),
	}
	if len(heldOut) > 0 {
		err := p.s.Step(fmt.Sprintf("%d points on the snapshots held out", len(result.Points)), func() error {
			return p.hold(ctx, space, result, heldOut)
		})
		if err != nil {
			return nil, err
		}
	}
	for i := range result.Points {
		if err := space.describe(&result.Points[i], trials); err != nil {
			return nil, err
		}
	}
	result.Choices = tune.Compare(r.Objectives, result.Points, tune.Choose(r.Objectives, trials, len(given)))
	result.Notes = append(p.collected(), failed(trials)...)
	p.s.Note(fmt.Sprintf("%d simulations in %s: %.1f s for each, of which the scheduler took %.1f s", p.simulations,
		time.Since(begin).Round(time.Second), time.Since(begin).Seconds()/float64(max(p.simulations, 1)),
		p.scheduling/float64(max(p.simulations, 1))))
	return result, nil
}

// hold evaluates the points on snapshots that the search did not see.
func (p *pool) hold(ctx context.Context, space *space, result *tune.Result, heldOut []*world) error {
	var again []tune.Candidate
	for _, point := range result.Points {
		i := slices.IndexFunc(result.Trials, func(t tune.Trial) bool { return t.Name == point.Name })
		again = append(again, result.Trials[i].Candidate)
	}
	trials, err := p.try(ctx, space, again, heldOut)
	if err != nil {
		return err
	}
	for i := range trials {
		result.Points[i].HeldOut = trials[i].Figures
	}
	tune.MarkHeldOut(result.Objectives, result.Points)
	return nil
}

func failed(trials []tune.Trial) []string {
	var notes []string
	for _, t := range trials {
		if t.Error != "" {
			notes = append(notes, t.Name+" failed: "+t.Error)
		}
	}
	return notes
}

func unknown(heldOut int) []string {
	list := []string{
		"whether a better configuration exists: a search of a part of all settings proves the contrary of nothing",
		"ties: each simulation breaks them in the same way for a seed; a cluster breaks them at random, and figures of equal " +
			"quality vary with --seed",
		"preferences of pods, such as preferred affinity: no objective measures them, so the weights of TaintToleration, " +
			"NodeAffinity and InterPodAffinity stay unchanged",
		"the future: arrivals, completions and load that the snapshots do not have; the speed of the scheduler",
		"percentageOfNodesToScore: simulations examine one node at a time in the order of their names, so that a cluster may " +
			"examine other nodes",
	}
	if heldOut == 0 {
		list = append(list, "whether the figures hold for other snapshots: none was held out")
	}
	return list
}

// newSpace returns the settings to search: today's values and others.
func newSpace(scheduler pack.Scheduler, worlds []*world) (*space, error) {
	x := &space{scheduler: scheduler, compiled: worlds[0].programs.Scheduler}
	var err error
	if x.today, err = x.tunable(scheduler.Preset, scheduler.Configuration, scheduler.ConfigurationName); err != nil {
		return nil, err
	}
	nodes, images, resources := 0, false, []string{}
	for _, w := range worlds {
		images = images || w.images
		nodes, resources = max(nodes, w.nodes), append(resources, w.resources...)
	}
	slices.Sort(resources)
	x.addSettings(nodes, images, slices.Compact(resources))
	for _, preset := range profiles.Presets() {
		t, err := x.tunable(preset.Name, nil, "")
		if err != nil {
			return nil, err
		}
		x.presets = append(x.presets, named{tune.Preset + preset.Name, t})
	}
	return x, nil
}
