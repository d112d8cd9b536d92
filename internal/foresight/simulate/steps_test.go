package simulate

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
)

// Files are relative to the directory of the scenario, and new nodes of a template are numbered
// over all steps.
func TestStepsAreReadWithTheirFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"web.yaml":  "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: web, image: web}]}\n",
		"node.yaml": "apiVersion: v1\nkind: Node\nmetadata: {name: big}\nstatus: {allocatable: {cpu: 8}}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	nodes := scenario.Step{Scenario: "nodes", Add: []scenario.NodesToAdd{{Template: "node.yaml", Count: 2}}}
	got, err := Script{Dir: dir, Steps: []scenario.Step{
		{Scenario: "drain", Nodes: []string{"a"}}, nodes, nodes, {Scenario: "add", Files: []string{"web.yaml"}, Count: 3,
			Limit: 4}, {Scenario: "replace-all"}, {Scenario: "pending"},
	}}.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range got {
		name := s.Name
		for _, o := range s.Objects {
			key, err := o.Kind.Key(o.Fields)
			if err != nil {
				t.Fatal(err)
			}
			name += " " + key
		}
		names = append(names, name)
	}
	want := []string{"drain", "nodes big-new-1 big-new-2", "nodes big-new-3 big-new-4", "add", "replace-all", "pending"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if add := got[3]; add.Count != 3 || add.Limit != 4 || len(add.Workloads) != 1 ||
		!slices.Equal(got[0].Nodes, []string{"a"}) {
		t.Errorf("add %+v, drain %v", add, got[0].Nodes)
	}
}

func TestTemplatesThatAreNoNodesAreRefused(t *testing.T) {
	cases := map[string]string{
		"kind: Node\napiVersion: v1\n": "the Node has no metadata.name",
		"kind: Pod\napiVersion: v1\n":  "expected one manifest of kind Node",
		"kind: Node\napiVersion: v1\nmetadata: {name: a}\n---\nkind: Node\napiVersion: v1\nmetadata: {name: b}\n": "expected one manifest",
	}
	for text, want := range cases {
		file := filepath.Join(t.TempDir(), "node.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		nodes := scenario.Step{Scenario: "nodes", Add: []scenario.NodesToAdd{{Template: file, Count: 1}}}
		_, err := Script{Steps: []scenario.Step{nodes}}.Read(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) || !problem.IsInvalid(err) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
