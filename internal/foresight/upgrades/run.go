package upgrades

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/kubescheduler"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/capture"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Request describes the scheduler and the objects.
type Request struct {
	simulate.Input
	// To is the release to upgrade to. If it is empty, it is the next minor release.
	To string
	// Gates are the feature gates that the scheduler's flags set.
	Gates map[string]bool
}

// mostRuns limits the runs by each scheduler.
const mostRuns = 12

// Run compares a scheduler at two releases, by tables and by simulations on a snapshot: it
// schedules all movable and pending pods again. The cluster is only read, and not at all with a
// file.
func Run(ctx context.Context, s *session.Session, r Request) (result *Result, err error) {
	snap, err := capture.Open(ctx, s, r.Snapshot)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	from, err := simulate.ReleaseOf(ctx, s, r.Scheduler.Branch, snap.Header)
	if err != nil {
		return nil, err
	}
	to, err := findTarget(ctx, s, from, r.To)
	if err != nil {
		return nil, err
	}
	c := &comparison{s: s, r: r, snap: snap}
	if c.from, err = c.compile(ctx, from); err != nil {
		return nil, err
	}
	c.result = &Result{
		Scheduler: c.from.Scheduler.Request.Name, From: from.String(), To: to.String(), Programs: c.from.Origins,
		Tables:  Tables{Gates: compareGates(from, to, r.Gates)},
		Unknown: unknown(),
	}
	fitting, notes, err := versions.FitArgs(r.Scheduler.Args, to) // as an upgrade does
	if err != nil {
		c.block(err)
		return c.result, nil
	}
	c.result.Changes, c.r.Scheduler.Args = append(c.result.Changes, notes...), fitting
	if !to.Rules().Policy {
		c.r.Scheduler.Configuration.Policy = false
	}
	if c.to, err = c.compile(ctx, to); err != nil {
		if ctx.Err() != nil || len(r.Scheduler.Plugins)+len(r.Scheduler.Imports) == 0 {
			return nil, err
		}
		c.block(fmt.Errorf("build the scheduler with its plugins at %s: %w", to, err))
		return c.result, nil
	}
	if to.Compare(from) != 0 {
		c.result.Programs = append(c.result.Programs, c.to.Origins...)
	}
	if err := c.compareTables(); err != nil || c.result.Blocked != "" {
		return c.result, err
	}
	return c.result, c.comparePlacements(ctx)
}

// comparison compares a scheduler at two releases.
type comparison struct {
	s        *session.Session
	r        Request
	snap     *capture.Snapshot
	from, to simulate.Programs
	result   *Result
}

func (c *comparison) compile(ctx context.Context, release versions.Release) (simulate.Programs, error) {
	scheduler := c.r.Scheduler
	scheduler.Branch = release.String()
	return simulate.Compile(ctx, c.s, scheduler, c.snap.Header)
}

// block records why the scheduler cannot run at the target.
func (c *comparison) block(err error) {
	c.result.Blocked, c.result.Needs = err.Error(), problem.Hints(err)
}

// compareTables renders the configuration for both releases and compares them.
func (c *comparison) compareTables() error {
	var sides [2]*Scheduler
	for i, scheduler := range []*kubescheduler.Scheduler{&c.from.Scheduler, &c.to.Scheduler} {
		quiet := c.s.WithoutMessages()
		if i == 1 { // the changes of the conversion are part of the result
			quiet.Note = func(text string) { c.result.Changes = append(c.result.Changes, text) }
			quiet.Warn = func(text string) { c.result.Warnings = append(c.result.Warnings, text) }
		}
		configuration, err := scheduler.Configure(quiet, "kubeconfig", 0)
		if err != nil && i == 1 {
			c.block(err)
			return nil
		}
		if err != nil {
			return err
		}
		sides[i] = &Scheduler{Name: scheduler.Request.Name, Release: scheduler.Release,
			Configuration: configuration.YAML, Gates: c.r.Gates}
	}
	tables, err := compare(sides[0], sides[1])
	if err != nil {
		return err
	}
	c.result.Tables = *tables
	return nil
}

// comparePlacements runs both schedulers until ties are distinguished from differences.
func (c *comparison) comparePlacements(ctx context.Context) (err error) {
	servers, err := simulate.NewServers(c.s.WithoutMessages(), "upgrade")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, servers.Close()) }()
	var both [2]*simulate.Simulation
	for i, p := range []simulate.Programs{c.from, c.to} {
		both[i] = &simulate.Simulation{Programs: p, Snapshot: c.snap, Timeout: c.r.Timeout,
			Scenarios: []scenario.Scenario{scenario.ReplaceAll()}}
	}
	c.result.Placements, c.result.Notes, err = CompareRuns(ctx, both, simulate.NewRuns(servers).Results)
	return err
}

// CompareRuns runs a scheduler at two releases until ties are distinguished from differences, and
// returns the differences and the simulations' notes. runs returns a simulation's first n results.
func CompareRuns(
	ctx context.Context, both [2]*simulate.Simulation,
	runs func(ctx context.Context, m *simulate.Simulation, n int) ([]*report.Report, error),
) (*Placements, []string, error) {
	var sides [2]Side
	for i, m := range both {
		scheduler := &m.Programs.Scheduler
		sides[i].Ordered = simulate.OrdersTies(scheduler.Release)
		scheduler.Repeatable = sides[i].Ordered
	}
	for n := 0; ; n++ {
		var results [2][]*report.Report
		for i, m := range both {
			sides[i].Runs = sides[i].Next(n)
			var err error
			if results[i], err = runs(ctx, m, sides[i].Runs); err != nil {
				return nil, nil, fmt.Errorf("at %s: %w", m.Programs.Scheduler.Release, err)
			}
		}
		found := comparePlacements(results[0], results[1])
		if found.enough(sides[0], sides[1]) || n+1 == mostRuns {
			return found, combineNotes(results[0][0], results[1][0]), nil
		}
	}
}

// combineNotes returns the notes from two simulations. A note that only one has names its release.
func combineNotes(from, to *report.Report) (notes []string) {
	for _, r := range []*report.Report{from, to} {
		for _, note := range r.Notes {
			if !slices.Contains(from.Notes, note) || !slices.Contains(to.Notes, note) {
				note = r.Release + ": " + note
			}
			if !slices.Contains(notes, note) {
				notes = append(notes, note)
			}
		}
	}
	return notes
}

func unknown() []string {
	return []string{
		"kubelets, controllers, admission webhooks and autoscalers of the new release: only kube-scheduler and the API server run",
		"ties, and what follows from them: a pod whose runs differ within a release is not compared",
		"samples of clusters with more than 100 nodes, and the order in which pods arrive: all pods that can move are " +
			"scheduled again, by priority, then by age",
		"extenders: the answers of the ones that a configuration names are the answers of today's programs",
		"bugs that the table of known problems does not have",
	}
}

// findTarget returns the release to upgrade to.
func findTarget(
	ctx context.Context, s *session.Session, from versions.Release, to string,
) (versions.Release, error) {
	if to != "" {
		return pack.ResolveBranch(ctx, s, to)
	}
	for _, release := range versions.Releases() {
		if release.Minor == from.Minor+1 {
			return release, nil
		}
	}
	return versions.Release{}, problem.Invalidf("specify a release with --to",
		"this pmk-sched does not know the minor release after %s", from.MinorString())
}
