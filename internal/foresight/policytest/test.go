package policytest

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/load"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/capture"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/files"
)

// world is a test's cluster.
type world struct {
	name string
	*capture.Snapshot
	// observer follows the runs.
	observer simulate.Observer
	notes    []string
}

// creator creates the objects of a test that are not of a snapshot's kinds.
type creator struct {
	simulate.Unobserved
	objects []map[string]any
}

// Loaded creates them.
func (c creator) Loaded(ctx context.Context, r *simulate.Run) error {
	return load.Others(ctx, r.Config(), c.objects)
}

// openSnapshots opens the snapshots in a request. The returned function closes them.
func openSnapshots(ctx context.Context, s *session.Session, r Request) (all []*world, closeAll func(), err error) {
	closeAll = func() {
		for _, w := range all {
			if err := w.Close(); err != nil {
				s.Warn(err.Error())
			}
		}
	}
	requests := []capture.Request{{Version: r.Version}}
	if len(r.Snapshots) > 0 {
		requests = nil
	}
	for _, path := range r.Snapshots {
		requests = append(requests, capture.Request{From: []string{path}, Stdin: r.Stdin, Version: r.Version})
	}
	for _, request := range requests {
		w := &world{name: "cluster"}
		if len(request.From) > 0 {
			w.name = request.From[0]
		}
		if w.Snapshot, err = capture.Open(ctx, s, request); err != nil {
			return all, closeAll, err
		}
		all = append(all, w)
	}
	return all, closeAll, nil
}

// test is a file with its objects.
type test struct {
	file string
	*v1alpha1.SchedulingTest
	// steps for the file and for each expectation. Paths are absolute or relative to the working
	// directory.
	steps [][]scenario.Step
	// own is the cluster with the test's objects. If it is nil, the cluster comes from a snapshot.
	own *world
}

// readFile reads a file without the files that it names.
func readFile(file string) (*test, error) {
	text, err := problem.ReadFile("test", file)
	if err != nil {
		return nil, err
	}
	t := &test{file: file}
	if t.SchedulingTest, err = v1alpha1.DecodeTest(text); err != nil {
		return nil, problem.Invalidf("", "read %s: %w", file, err)
	}
	for i := range t.Expect {
		steps := t.Steps
		if t.Expect[i].Steps != nil {
			steps = t.Expect[i].Steps
		}
		parsed, err := scenario.ParseSteps(file, steps)
		if err != nil {
			return nil, err
		}
		if len(parsed) == 0 {
			parsed = []scenario.Step{{Scenario: "pending"}}
		}
		t.steps = append(t.steps, t.relocate(parsed))
	}
	return t, nil
}

// isTest reports whether a file is one with a test.
func isTest(file string) bool {
	text, err := problem.ReadFile("test", file)
	return err == nil && v1alpha1.IsTest(text)
}

// relocate returns steps with paths that are relative to the file.
func (t *test) relocate(steps []scenario.Step) []scenario.Step {
	for i := range steps {
		for j, path := range steps[i].Files {
			steps[i].Files[j] = t.path(path)
		}
		for j, add := range steps[i].Add {
			if add.IsFile() {
				steps[i].Add[j].Template = t.path(add.Template)
			}
		}
	}
	return steps
}

// path returns a path that is relative to the file's directory.
func (t *test) path(path string) string {
	if filepath.IsAbs(path) || path == files.Stdin {
		return path
	}
	return filepath.Join(filepath.Dir(t.file), path)
}

// paths returns the files and directories that the test names.
func (t *test) paths() []string {
	var paths []string
	for _, source := range t.Objects {
		if source.Path != "" {
			paths = append(paths, t.path(source.Path))
		}
	}
	for _, steps := range t.steps {
		for _, step := range steps {
			paths = append(paths, step.Files...)
			for _, add := range step.Add {
				if add.IsFile() {
					paths = append(paths, add.Template)
				}
			}
		}
	}
	for _, e := range t.Expect {
		if e.SameAs != nil && e.SameAs.Scheduler != "" && e.SameAs.Scheduler != v1alpha1.DefaultScheduler {
			paths = append(paths, t.path(e.SameAs.Scheduler))
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// readTest reads a file and the objects that it names.
func readTest(ctx context.Context, file string) (*test, error) {
	t, err := readFile(file)
	if err != nil || t.Objects == nil {
		return t, err
	}
	var manifests []map[string]any
	var notes []string
	add := func(o map[string]any) error {
		manifests = append(manifests, o)
		return nil
	}
	for _, source := range t.Objects {
		if source.Path != "" {
			found, err := files.Manifests(ctx, []string{t.path(source.Path)}, nil, add)
			if err != nil {
				return nil, err
			}
			notes = append(notes, found...)
			continue
		}
		found, err := files.Text(source.Object, source.Line, func(o map[string]any) error {
			for i := range max(source.Count, 1) {
				o := runtime.DeepCopyJSON(o)
				if metadata, ok := o["metadata"].(map[string]any); ok && source.Count > 0 {
					metadata["name"] = fmt.Sprintf("%v-%d", metadata["name"], i+1)
				}
				manifests = append(manifests, o)
			}
			return nil
		})
		if err != nil {
			return nil, problem.Invalidf("", "read %s: %w", file, err)
		}
		notes = append(notes, found...)
	}
	objects, err := scenario.NewObjects(manifests)
	if err != nil {
		return nil, problem.Invalidf("", "read %s: %w", file, err)
	}
	t.own = &world{
		Snapshot: &capture.Snapshot{Header: &snapshot.Header{Consistent: true}, Objects: objects},
		notes:    append(notes, objects.Notes...),
		observer: creator{objects: objects.Others},
	}
	return t, nil
}
