// Package plugintest runs plugins in the scheduler of any release against scenarios with
// expectations.
package plugintest

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
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/load"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/files"
)

// Request describes the scheduler and the files of a test.
type Request struct {
	// Files are scenarios with objects and expectations.
	Files     []string
	Scheduler pack.Scheduler
	// Branches are the releases. If there are none, the release of the scheduler is tested.
	Branches []string
	// Timeout bounds the time that the scheduler gets to decide about all pods of a scenario.
	Timeout time.Duration
}

// Result is the result of a scenario at a release.
type Result struct {
	Scenario string  `json:"scenario"`
	Release  string  `json:"release"`
	Seconds  float64 `json:"seconds"`
	// Expectations are the expected and the actual result of each pod.
	Expectations []report.Outcome `json:"expectations"`
	Notes        []string         `json:"notes,omitempty"`
}

// Paths returns the files and directories that the result depends on: local plugins, the
// configuration, and the scenarios with the files that they name. If a scenario cannot be read, its
// files are missing.
func (r Request) Paths() []string {
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
func Run(ctx context.Context, s *session.Session, servers *simulate.Servers, r Request) ([]Result, error) {
	var tests []*test
	for _, file := range r.Files {
		t, err := readTest(ctx, file)
		if err != nil {
			return nil, err
		}
		tests = append(tests, t)
	}
	branches := r.Branches
	if len(branches) == 0 {
		branches = []string{r.Scheduler.Branch}
	}
	var results []Result
	for _, branch := range branches {
		scheduler := r.Scheduler
		var err error
		if scheduler.Branch, err = branchOrCluster(s, branch); err != nil {
			return nil, err
		}
		programs, err := simulate.Compile(ctx, s, scheduler, &snapshot.Header{})
		if err != nil {
			return nil, err
		}
		for _, t := range tests {
			result, err := t.run(ctx, servers, programs, r.Timeout)
			if err != nil {
				return nil, err
			}
			results = append(results, *result)
		}
	}
	return results, nil
}

// branchOrCluster returns the branch, or the release of the cluster if the branch is to be found
// there.
func branchOrCluster(s *session.Session, branch string) (string, error) {
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

// test is a file with its objects.
type test struct {
	file    string
	objects *scenario.Objects
	expect  []report.Expectation
}

// readTest reads a file and the files that it names.
func readTest(ctx context.Context, file string) (*test, error) {
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
	return &test{file: file, objects: objects, expect: parsed.Expect}, nil
}

// pathFrom returns a path that is relative to the directory of a file.
func pathFrom(file, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(file), path)
}

// run runs the test with the scheduler of the programs.
func (t *test) run(
	ctx context.Context, servers *simulate.Servers, programs simulate.Programs, timeout time.Duration,
) (*Result, error) {
	if err := servers.Start(ctx, programs); err != nil {
		return nil, err
	}
	begin := time.Now()
	result, err := servers.Run(ctx, programs, simulate.Options{
		Scenario: scenario.Pending(), Snapshot: t.objects, Undecided: true, Timeout: timeout,
		Before: func(ctx context.Context, cfg *rest.Config) error { return load.Others(ctx, cfg, t.objects.Others) },
	})
	release := programs.Scheduler.Release.String()
	if err != nil {
		return nil, fmt.Errorf("%s at %s: %w", t.file, release, err)
	}
	return &Result{
		Scenario: t.file, Release: release, Seconds: time.Since(begin).Seconds(),
		Expectations: result.Check(t.expect, t.objects.Bound), Notes: append(t.objects.Notes, result.Notes...),
	}, nil
}
