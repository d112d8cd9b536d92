// Package policytest runs the scheduler from any release, with plugins, against files with
// expectations.
package policytest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/files"
)

// Request describes the scheduler and the test files.
type Request struct {
	// Paths are files with tests, and directories with them.
	Paths []string
	// Snapshots are the clusters for tests without objects, in any format that package files reads. If
	// there are none, it is the live cluster. Stdin is read for "-".
	Snapshots []string
	Stdin     io.Reader
	Scheduler pack.Scheduler
	// Branches are the releases. If there are none, the scheduler is tested at its own release, or at
	// the snapshot's.
	Branches []string
	// Baseline returns the scheduler in a file, or the default scheduler.
	Baseline func(source string) (pack.Scheduler, error)
	// Timeout bounds the time that the scheduler gets to decide about all pods of a step.
	Timeout time.Duration
	// Version of pmk-sched.
	Version string
}

// Result is a test's result at a release.
type Result struct {
	Test string `json:"test"`
	// Snapshot is the cluster for a test without objects.
	Snapshot string `json:"snapshot,omitempty"`
	Release  string `json:"release"`
	// Seconds of the simulations that this test needed and no earlier one.
	Seconds      float64   `json:"seconds"`
	Expectations []Outcome `json:"expectations"`
	Notes        []string  `json:"notes,omitempty"`
}

// Watched returns the files and directories that the result depends on: local plugins, the
// configuration, the tests with the files that they name, and the snapshots. If a test cannot be
// read, its files are missing.
func (r Request) Watched() []string {
	paths := slices.Concat(r.Paths, r.Snapshots)
	if c := r.Scheduler.Configuration; c.Source != nil {
		paths = append(paths, c.SourceName)
	}
	for _, p := range r.Scheduler.Plugins {
		if p.Dir != "" {
			paths = append(paths, p.Dir)
		}
	}
	tests, err := r.find()
	if err != nil {
		return paths
	}
	for _, file := range tests {
		if t, err := readFile(file); err == nil {
			paths = append(paths, t.paths()...)
		}
	}
	return slices.DeleteFunc(paths, func(path string) bool { return path == files.Stdin })
}

// find returns the files with tests. Files in directories that are not tests, such as manifests,
// are left out.
func (r Request) find() ([]string, error) {
	var found []string
	for _, path := range r.Paths {
		err := filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
			if err != nil {
				return problem.Invalidf("", "read test: %w", err)
			}
			extension := filepath.Ext(file)
			if file == path && !entry.IsDir() ||
				!entry.IsDir() && (extension == ".yaml" || extension == ".yml") && isTest(file) {
				found = append(found, file)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if len(found) == 0 {
		return nil, problem.Invalidf("a test is a file with kind: "+v1alpha1.TestKind, "%q: no test is there", r.Paths)
	}
	return found, nil
}

// Run runs each test on each snapshot at each release, with the scheduler compiled from the plugins
// as they are now. Simulations that several expectations need run once.
func Run(ctx context.Context, s *session.Session, servers *simulate.Servers, r Request) ([]Result, error) {
	paths, err := r.find()
	if err != nil {
		return nil, err
	}
	var tests []*test
	needSnapshots := false
	for _, path := range paths {
		t, err := readTest(ctx, path)
		if err != nil {
			return nil, err
		}
		tests = append(tests, t)
		needSnapshots = needSnapshots || t.own == nil
	}
	worlds := []*world{nil}
	if needSnapshots {
		opened, closeAll, err := openSnapshots(ctx, s, r)
		defer func() { closeAll() }()
		if err != nil {
			return nil, err
		}
		worlds = opened
	}
	e := &engine{s: s, runs: simulate.NewRuns(servers), timeout: r.Timeout, kept: map[simulation]*simulate.Simulation{}}
	var results []Result
	for _, snapshot := range worlds {
		for _, branch := range branchesOr(r.Branches, r.Scheduler.Branch) {
			for i, t := range tests {
				w := cmp.Or(t.own, snapshot)
				if t.own != nil && snapshot != worlds[0] {
					continue // it does not depend on the snapshot
				}
				result, err := e.run(ctx, r, t, w, branch)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", paths[i], err)
				}
				results = append(results, *result)
			}
		}
		clear(e.kept) // no later test needs the results
	}
	return results, nil
}

func branchesOr(branches []string, branch string) []string {
	if len(branches) == 0 {
		return []string{branch}
	}
	return branches
}

// clusterRelease returns the branch, or the cluster's release if the branch is to be found there.
func clusterRelease(s *session.Session, branch string) (string, error) {
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
