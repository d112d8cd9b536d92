package simulate

import (
	"context"
	"io"
	"path/filepath"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/files"
)

// Script are steps, each in the state after the step before. Their files are relative to Dir; Stdin
// is read for "-".
type Script struct {
	Steps []scenario.Step
	Dir   string
	Stdin io.Reader
}

// Read reads the steps' files.
func (r Script) Read(ctx context.Context) ([]scenario.Scenario, error) {
	added := map[string]int{} // nodes, by the template's name
	var all []scenario.Scenario
	for _, step := range r.Steps {
		s, err := r.readStep(ctx, step, added)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func (r Script) readStep(ctx context.Context, step scenario.Step, added map[string]int) (scenario.Scenario, error) {
	switch step.Scenario {
	case "pending":
		return scenario.Pending(), nil
	case "replace-all":
		return scenario.ReplaceAll(), nil
	case "drain":
		return scenario.Drain(step.Nodes), nil
	case "add":
		manifests, notes, err := r.Manifests(ctx, step.Files)
		if err != nil {
			return scenario.Scenario{}, err
		}
		s, err := scenario.Add(manifests, step.Count, step.Limit)
		s.Notes = append(s.Notes, notes...)
		return s, err
	case "nodes":
		templates, notes, err := r.templates(ctx, step.Add)
		if err != nil {
			return scenario.Scenario{}, err
		}
		for i := range templates {
			t := &templates[i]
			t.First = added[t.Name] + 1
			added[t.Name] += t.Count
		}
		s, err := scenario.Nodes(templates)
		s.Notes = append(s.Notes, notes...)
		return s, err
	}
	return scenario.Scenario{}, problem.Invalidf("", "invalid scenario %q", step.Scenario)
}

// Manifests reads the objects in files. The notes are for the report.
func (r Script) Manifests(ctx context.Context, paths []string) (all []map[string]any, notes []string, err error) {
	var absolute []string
	for _, path := range paths {
		if path != files.Stdin && !filepath.IsAbs(path) {
			path = filepath.Join(r.Dir, path)
		}
		absolute = append(absolute, path)
	}
	notes, err = files.Manifests(ctx, absolute, r.Stdin, func(o map[string]any) error {
		all = append(all, o)
		return nil
	})
	return all, notes, err
}

// templates reads node manifests.
func (r Script) templates(ctx context.Context, add []scenario.NodesToAdd) (all []scenario.Template, notes []string,
	err error) {
	for _, a := range add {
		if !a.IsFile() {
			all = append(all, scenario.Template{Name: a.Template, Count: a.Count})
			continue
		}
		manifests, found, err := r.Manifests(ctx, []string{a.Template})
		if err != nil {
			return nil, nil, err
		}
		notes = append(notes, found...)
		if len(manifests) != 1 || manifests[0]["kind"] != "Node" || manifests[0]["apiVersion"] != "v1" {
			return nil, nil, problem.Invalidf("", "read %s: expected one manifest of kind Node", a.Template)
		}
		metadata, _ := manifests[0]["metadata"].(map[string]any)
		name, _ := metadata["name"].(string)
		if name == "" {
			return nil, nil, problem.Invalidf("", "read %s: the Node has no metadata.name", a.Template)
		}
		all = append(all, scenario.Template{Name: name, Node: manifests[0], Count: a.Count})
	}
	return all, notes, nil
}
