package session

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/load"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/files"
)

// PluginTestRequest describes the scheduler and the files of a test.
type PluginTestRequest struct {
	// Files are scenarios with objects and expectations.
	Files     []string
	Scheduler pack.Scheduler
	// Branches are the releases. If there are none, the release of the scheduler is tested.
	Branches []string
	// Timeout bounds the time that the scheduler gets to decide about all pods of a scenario.
	Timeout time.Duration
}

// PluginTestRun is the result of a scenario at a release.
type PluginTestRun struct {
	Scenario string  `json:"scenario"`
	Release  string  `json:"release"`
	Seconds  float64 `json:"seconds"`
	// Expectations are the expected and the actual result of each pod.
	Expectations []report.Outcome `json:"expectations"`
	Notes        []string         `json:"notes,omitempty"`
}

// PluginTests runs scenarios against schedulers. It keeps an API server for each release until it is closed.
type PluginTests struct {
	s       *Session
	servers *apiServers
}

// NewPluginTests returns tests without an API server. Close them.
func (s *Session) NewPluginTests() (*PluginTests, error) {
	servers, err := s.newAPIServers("plugin-test")
	return &PluginTests{s, servers}, err
}

// Close stops the API servers.
func (t *PluginTests) Close() error { return t.servers.Close() }

// Paths returns the files and directories that the result depends on: local plugins, the
// configuration, and the scenarios with the files that they name. If a scenario cannot be read, its
// files are missing.
func (r PluginTestRequest) Paths() []string {
	paths := slices.Clone(r.Files)
	if r.Scheduler.Configuration != nil {
		paths = append(paths, r.Scheduler.ConfigurationName)
	}
	for _, p := range r.Scheduler.Plugins {
		if p.Dir != "" {
			paths = append(paths, p.Dir)
		}
	}
	for _, file := range r.Files {
		text, err := problem.ReadFile("scenario", file)
		if err != nil {
			continue
		}
		if parsed, err := scenario.ParseTest(file, text); err == nil {
			for _, source := range parsed.Objects {
				if source.Path != "" {
					paths = append(paths, pathFrom(file, source.Path))
				}
			}
		}
	}
	return paths
}

// Run runs each file at each release, with the scheduler compiled from the plugins as they are now.
func (t *PluginTests) Run(ctx context.Context, r PluginTestRequest) ([]PluginTestRun, error) {
	var tests []*pluginTest
	for _, file := range r.Files {
		test, err := readPluginTest(ctx, file)
		if err != nil {
			return nil, err
		}
		tests = append(tests, test)
	}
	var runs []PluginTestRun
	branches := r.Branches
	if len(branches) == 0 {
		branches = []string{r.Scheduler.Branch}
	}
	for _, branch := range branches {
		more, err := t.runBranch(ctx, r, branch, tests)
		if err != nil {
			return nil, err
		}
		runs = append(runs, more...)
	}
	return runs, nil
}

// runBranch runs the tests at one release.
func (t *PluginTests) runBranch(ctx context.Context, r PluginTestRequest, branch string, tests []*pluginTest) ([]PluginTestRun, error) {
	branch, err := t.s.releaseOrCluster(branch)
	if err != nil {
		return nil, err
	}
	scheduler := r.Scheduler
	scheduler.Branch = branch
	sim := simulation{s: t.s, header: &snapshot.Header{}, request: SimulateRequest{Timeout: r.Timeout}}
	o, err := sim.options(ctx, scheduler)
	if err != nil {
		return nil, err
	}
	var runs []PluginTestRun
	for _, test := range tests {
		server, err := t.servers.server(ctx, o)
		if err != nil {
			return nil, err
		}
		begin := time.Now()
		if o.Dir, err = t.servers.newDir(); err != nil {
			return nil, err
		}
		result, err := test.run(ctx, server, o)
		if err != nil {
			return nil, fmt.Errorf("%s at %s: %w", test.file, o.Scheduler.Release, err)
		}
		runs = append(runs, PluginTestRun{
			Scenario: test.file, Release: o.Scheduler.Release.String(), Seconds: time.Since(begin).Seconds(),
			Expectations: result.Check(test.expect, test.objects.Bound), Notes: append(test.objects.Notes, result.Notes...),
		})
	}
	return runs, nil
}

// releaseOrCluster replaces the branch that is to be found on the cluster.
func (s *Session) releaseOrCluster(branch string) (string, error) {
	if branch != "" && branch != pack.BranchAuto {
		return branch, nil
	}
	const hint = "specify a release, for example --branch v1.24.3"
	cfg, err := s.Connect()
	if err != nil {
		return "", problem.WithHint(err, hint)
	}
	release, err := inspect.ServerRelease(cfg)
	if err != nil {
		return "", problem.WithHint(err, hint)
	}
	return release.String(), nil
}

// pluginTest is a file with its objects.
type pluginTest struct {
	file    string
	objects *scenario.Objects
	expect  []report.Expectation
}

// readPluginTest reads a file and the files that it names.
func readPluginTest(ctx context.Context, file string) (*pluginTest, error) {
	text, err := problem.ReadFile("scenario", file)
	if err != nil {
		return nil, err
	}
	parsed, err := scenario.ParseTest(file, text)
	if err != nil {
		return nil, err
	}
	var manifests []map[string]any
	for _, source := range parsed.Objects {
		if source.Path == "" {
			manifests = append(manifests, source.Make()...)
			continue
		}
		err := files.Manifests(ctx, []string{pathFrom(file, source.Path)}, nil, func(o map[string]any) error {
			manifests = append(manifests, o)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	objects, err := scenario.NewObjects(manifests)
	if err != nil {
		return nil, problem.Invalidf("", "read %s: %w", file, err)
	}
	return &pluginTest{file: file, objects: objects, expect: parsed.Expect}, nil
}

// pathFrom returns a path that is relative to the directory of a file.
func pathFrom(file, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(file), path)
}

// run runs the test on an API server.
func (test *pluginTest) run(ctx context.Context, server *simulate.Server, o simulate.Options) (*report.Report, error) {
	o.Scenario, o.Snapshot, o.Undecided = scenario.Pending(), test.objects, true
	o.Before = func(ctx context.Context, cfg *rest.Config) error { return load.Others(ctx, cfg, test.objects.Others) }
	return server.Run(ctx, o)
}
