package tune

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/kubescheduler"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/matrix"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/capture"
	"github.com/pmk-sched/pmk-sched/profiles"
)

// Request describes a search.
type Request struct {
	// Scheduler has today's configuration.
	Scheduler pack.Scheduler
	// Snapshots are for the search. HeldOut's figures are shown next to it. If there are none, the
	// last third of several Snapshots is held out.
	Snapshots, HeldOut []string
	Stdin              io.Reader
	// Script is the scenario, and ScenarioName its name.
	simulate.Script
	ScenarioName string
	Objectives   []Objective
	Prices       []report.Price
	// Trials is the number of configurations to try, Parallel the number of simulations at the same
	// time. Each one has an API server.
	Trials, Parallel int
	Seed             uint64
	// Job runs the simulations on the cluster. If it is nil, they run on this machine.
	Job *matrix.JobRequest
	// Timeout bounds the time that a scheduler gets to decide about all pods of a step.
	Timeout time.Duration
	// Version of pmk-sched.
	Version string
}

// world is a snapshot.
type world struct {
	*capture.Snapshot
	// index is the place in the list of all snapshots.
	index int
	name  string
	nodes int
	// images reports whether nodes list images.
	images bool
	// resources are the extended resources that pods request.
	resources []string
}

// Run searches. The cluster is not used, except for the Job.
func Run(ctx context.Context, s *session.Session, r Request) (result *Result, err error) {
	if n := len(r.Snapshots); n > 1 && len(r.HeldOut) == 0 {
		seen := n - max(1, n/3)
		r.Snapshots, r.HeldOut = r.Snapshots[:seen], r.Snapshots[seen:]
	}
	names := slices.Concat(r.Snapshots, r.HeldOut)
	variants, err := matrix.OpenVariants(ctx, s, matrix.Request{
		Schedulers: []pack.Scheduler{r.Scheduler}, Snapshots: names, Stdin: r.Stdin,
		Scenarios: []matrix.Scenario{{Name: r.ScenarioName, Script: r.Script}}, Parallel: r.Parallel, Timeout: r.Timeout,
		Job: r.Job, Seed: r.Seed, Prices: r.Prices, Version: r.Version,
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, variants.Close()) }()
	var all []*world
	for i, name := range names {
		w := &world{index: i, name: name}
		if w.Snapshot, err = variants.Snapshot(i); err == nil {
			err = w.count()
		}
		if err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	space, err := newSpace(r.Scheduler, variants.Programs(0).Scheduler, all)
	if err != nil {
		return nil, err
	}
	p := &pool{s: s, r: r, variants: variants}
	for _, w := range all {
		p.ranks = max(p.ranks, w.nodes+r.added())
	}
	return p.search(ctx, r, space, all[:len(r.Snapshots)], all[len(r.Snapshots):])
}

// added returns how many nodes the scenario adds at most.
func (r *Request) added() int {
	added := 0
	for _, step := range r.Steps {
		for _, add := range step.Add {
			added += add.Count
		}
	}
	return added
}

// count counts the nodes, of which there must be one, and finds the extended resources that pods
// can request.
func (w *world) count() error {
	err := w.Each(func(kind *snapshot.Kind, _ string, o map[string]any) error {
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
	if err == nil && w.nodes == 0 {
		err = problem.Invalidf("", "snapshot %s has no nodes", w.name)
	}
	return err
}

// search runs the search and evaluates its points on the snapshots that were held out.
func (p *pool) search(ctx context.Context, r Request, space *space, seen, heldOut []*world) (*Result, error) {
	given := space.given()
	s := Search{Settings: space.settings, Objectives: r.Objectives, Seed: r.Seed, Trials: r.Trials}
	done := 0
	begin := time.Now()
	trials, err := s.Run(given, func(next []Candidate) (all []Trial, err error) {
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
	first := p.variants.Programs(seen[0].index)
	result := &Result{
		Release: first.Scheduler.Release.String(), Scheduler: first.Scheduler.Request.Name, Scenario: r.ScenarioName,
		Seed: r.Seed, Snapshots: r.Snapshots, HeldOut: append([]string{}, r.HeldOut...), Objectives: r.Objectives,
		Settings: space.settings, Points: newPoints(r.Objectives, trials, len(given)), Trials: trials,
		Programs: first.Origins, Unknown: unknown(len(heldOut)),
	}
	if len(heldOut) > 0 {
		err := p.s.Step(plural.Count(len(result.Points), "point")+" on the snapshots held out", func() error {
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
	result.Choices = compareChoices(r.Objectives, result.Points, choose(r.Objectives, trials, len(given)))
	result.Notes = append(p.collected(), failed(trials)...)
	p.s.Note(fmt.Sprintf("%s in %s: %.1f s for each, of which the scheduler took %.1f s",
		plural.Count(p.simulations, "simulation"), time.Since(begin).Round(time.Second),
		time.Since(begin).Seconds()/float64(max(p.simulations, 1)), p.scheduling/float64(max(p.simulations, 1))))
	return result, nil
}

// hold evaluates the points on snapshots that the search did not see.
func (p *pool) hold(ctx context.Context, space *space, result *Result, heldOut []*world) error {
	var again []Candidate
	for _, point := range result.Points {
		i := slices.IndexFunc(result.Trials, func(t Trial) bool { return t.Name == point.Name })
		again = append(again, result.Trials[i].Candidate)
	}
	trials, err := p.try(ctx, space, again, heldOut)
	if err != nil {
		return err
	}
	for i := range trials {
		result.Points[i].HeldOut, result.Points[i].HeldOutBySnapshot = trials[i].Figures, trials[i].BySnapshot
	}
	markHeldOut(result.Objectives, result.Points)
	return nil
}

func failed(trials []Trial) []string {
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
func newSpace(scheduler pack.Scheduler, compiled kubescheduler.Scheduler, worlds []*world) (*space, error) {
	x := &space{scheduler: scheduler, compiled: compiled}
	var err error
	if x.today, err = x.tunable(scheduler.Configuration); err != nil {
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
		other := scheduler.Configuration
		other.Preset, other.Source, other.SourceName = preset.Name, nil, ""
		t, err := x.tunable(other)
		if err != nil {
			return nil, err
		}
		x.presets = append(x.presets, named{Preset + preset.Name, t})
	}
	return x, nil
}
