package scenario_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
)

const fileType = "apiVersion: pmk-sched.io/v1alpha1\nkind: Scenario\n"

func TestStepsOfAFile(t *testing.T) {
	const text = fileType + `metadata: {name: growth}
steps:
- scenario: drain
  nodes: [a, b]
- scenario: nodes
  add: {worker-1: 3, gpu.yaml: 2}
- scenario: pending
- scenario: add
  files: [web.yaml]
  count: 2
  limit: 0
- {scenario: replace-all}
`
	got, err := scenario.ParseFile("growth.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []scenario.Step{
		{Scenario: "drain", Nodes: []string{"a", "b"}, Count: 1, Limit: scenario.DefaultLimit},
		{Scenario: "nodes", Add: []scenario.NodesToAdd{
			{Template: "worker-1", Count: 3}, {Template: "gpu.yaml", Count: 2}}, Count: 1, Limit: scenario.DefaultLimit},
		{Scenario: "pending", Count: 1, Limit: scenario.DefaultLimit},
		{Scenario: "add", Files: []string{"web.yaml"}, Count: 2},
		{Scenario: "replace-all", Count: 1, Limit: scenario.DefaultLimit},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFilesAreReadStrictly(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"empty":             {"", "read s.yaml: the file is empty"},
		"not YAML":          {": [", "read s.yaml: did not find expected key"},
		"another kind":      {"apiVersion: v1\nkind: Pod\n", `read s.yaml: expected a Scenario, got v1 "Pod"`},
		"a second document": {fileType + "steps: [{scenario: pending}]\n---\na: b\n", "second document"},
		"no steps":          {fileType, "steps is required"},
		"a comment alone":   {"# a\n", "read s.yaml: the file is empty"},
		"null":              {"---\n", "read s.yaml:2:1: expected fields"},
		"a text":            {"a\n", "read s.yaml:1:1: expected fields"},
		"another version": {"apiVersion: pmk-sched.io/v1\nkind: Scenario\nsteps: [{scenario: pending}]\n",
			`expected a Scenario, got pmk-sched.io/v1 "Scenario"`},
		"another name":       {fileType + "metadata: {labels: {}}\n", "read s.yaml:3:12: unknown field labels"},
		"metadata is a text": {fileType + "metadata: a\n", "read s.yaml:3:11: expected fields"},
		"an empty name":      {fileType + "metadata: {name: ''}\n", "read s.yaml:3:18: expected text"},
		"a text for a list":  {fileType + "steps:\n- {scenario: drain, nodes: a}\n", "read s.yaml:4:28: expected a list"},
		"nothing in a list":  {fileType + "steps:\n- {scenario: drain, nodes: []}\n", "read s.yaml:4:28: expected a list"},
		"no files":           {fileType + "steps:\n- scenario: add\n  count: 3\n", "read s.yaml:4:3: files is required"},
		"no nodes to add":    {fileType + "steps:\n- scenario: nodes\n", "read s.yaml:4:3: add is required"},
		"an empty mapping":   {fileType + "steps:\n- scenario: nodes\n  add: {}\n", "read s.yaml:5:8: expected TEMPLATE: N"},
		"an empty template":  {fileType + "steps:\n- scenario: nodes\n  add: {'': 1}\n", "read s.yaml:5:9: expected TEMPLATE: N"},
		"a list as template": {fileType + "steps:\n- scenario: nodes\n  add: {[a]: 1}\n", "read s.yaml:5:9: expected TEMPLATE: N"},
		"no new node":        {fileType + "steps:\n- scenario: nodes\n  add: {a: 0}\n", `must be between 1 and 100000`},
		"too many nodes": {fileType + "steps:\n- scenario: nodes\n  add: {a: 100001}\n",
			`read s.yaml:5:12: invalid number "100001": must be between 1 and 100000`},
		"below zero": {fileType + "steps:\n- scenario: add\n  files: [a]\n  limit: -1\n",
			`read s.yaml:6:10: invalid number "-1": must be between 0 and 100000`},
		"a number as text": {fileType + "steps:\n- scenario: add\n  files: [a]\n  limit: '1'\n",
			`read s.yaml:6:10: invalid number "1"`},
		"an empty list":       {fileType + "steps: []\n", "read s.yaml:3:8: expected a list"},
		"an unknown field":    {fileType + "step: []\n", "read s.yaml:3:1: unknown field step"},
		"given twice":         {fileType + "kind: Scenario\n", "read s.yaml:3:1: kind is given twice"},
		"an unknown scenario": {fileType + "steps:\n- scenario: destroy\n", `read s.yaml:4:3: invalid scenario "destroy"`},
		"no scenario":         {fileType + "steps:\n- nodes: [a]\n", `read s.yaml:4:3: invalid scenario ""`},
		"not fields":          {fileType + "steps: [pending]\n", `read s.yaml:3:9: invalid scenario ""`},
		"of another scenario": {fileType + "steps:\n- scenario: pending\n  nodes: [a]\n",
			"read s.yaml:5:3: unknown field nodes"},
		"nothing to drain": {fileType + "steps:\n- scenario: drain\n", "read s.yaml:4:3: nodes is required"},
		"not a name":       {fileType + "steps:\n- scenario: drain\n  nodes: [1]\n", "read s.yaml:5:11: expected text"},
		"a count of nothing": {fileType + "steps:\n- scenario: add\n  files: [a]\n  count: 0\n",
			`read s.yaml:6:10: invalid number "0": must be between 1`},
		"not a number": {fileType + "steps:\n- scenario: nodes\n  add: {a: many}\n",
			`read s.yaml:5:12: invalid number "many"`},
		"no template": {fileType + "steps:\n- scenario: nodes\n  add: 3\n",
			"read s.yaml:5:8: expected TEMPLATE: N"},
		"a template given twice": {fileType + "steps:\n- scenario: nodes\n  add: {a: 1, a: 2}\n",
			"read s.yaml:5:15: a is given twice"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := scenario.ParseFile("s.yaml", []byte(tc.text))
			if err == nil || !strings.Contains(err.Error(), tc.want) || !problem.IsInvalid(err) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

// Numbers may be as large as the limit.
func TestNumbersOfStepsAreBounded(t *testing.T) {
	const text = fileType + "steps:\n- {scenario: add, files: [a], count: 100000, limit: 100000}\n" +
		"- {scenario: nodes, add: {a: 100000}}\n"
	got, err := scenario.ParseFile("s.yaml", []byte(text))
	want := []scenario.Step{{Scenario: "add", Files: []string{"a"}, Count: 100000, Limit: 100000},
		{Scenario: "nodes", Add: []scenario.NodesToAdd{{Template: "a", Count: 100000}}, Count: 1,
			Limit: scenario.DefaultLimit}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v: %s", err, diff)
	}
}

func TestStepsOfATest(t *testing.T) {
	var steps []v1alpha1.TestStep
	for _, text := range []string{"{scenario: drain, nodes: [a]}", "{scenario: pending}", "{scenario: pending, nodes: [a]}"} {
		var document yaml.Node
		if err := yaml.Unmarshal([]byte(text), &document); err != nil {
			t.Fatal(err)
		}
		steps = append(steps, v1alpha1.TestStep{Node: document.Content[0]})
	}
	got, err := scenario.ParseSteps("t.yaml", steps[:2])
	want := []scenario.Step{{Scenario: "drain", Nodes: []string{"a"}, Count: 1, Limit: scenario.DefaultLimit},
		{Scenario: "pending", Count: 1, Limit: scenario.DefaultLimit}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v: %s", err, diff)
	}
	if got, err := scenario.ParseSteps("t.yaml", steps); got != nil || err == nil ||
		err.Error() != "read t.yaml:1:21: unknown field nodes" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestNodesToAdd(t *testing.T) {
	cases := map[string]struct {
		want scenario.NodesToAdd
		file bool
	}{
		"a=1":           {scenario.NodesToAdd{Template: "a", Count: 1}, false},
		"worker-1=3":    {scenario.NodesToAdd{Template: "worker-1", Count: 3}, false},
		"gpu.yaml=1":    {scenario.NodesToAdd{Template: "gpu.yaml", Count: 1}, true},
		"dir/a=b=2":     {scenario.NodesToAdd{Template: "dir/a=b", Count: 2}, true},
		"a.yml=100000":  {scenario.NodesToAdd{Template: "a.yml", Count: 100000}, true},
		"a.json=1":      {scenario.NodesToAdd{Template: "a.json", Count: 1}, true},
		"a.yaml.b=1":    {scenario.NodesToAdd{Template: "a.yaml.b", Count: 1}, false},
		"a=100001":      {},
		"worker-1":      {},
		"=3":            {},
		"worker-1=0":    {},
		"worker-1=-1":   {},
		"worker-1=many": {},
		"a=1000000":     {},
	}
	for text, tc := range cases {
		got, err := scenario.ParseNodesToAdd(text)
		if got != tc.want || (err == nil) != (tc.want.Count > 0) || got.IsFile() != tc.file {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
	}
}
