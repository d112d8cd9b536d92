package scenario_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
		"empty":               {"", "read s.yaml: the file is empty"},
		"not YAML":            {": [", "read s.yaml: "},
		"another kind":        {"apiVersion: v1\nkind: Pod\n", `read s.yaml: expected a Scenario, got v1 "Pod"`},
		"a second document":   {fileType + "steps: [{scenario: pending}]\n---\na: b\n", "second document"},
		"no steps":            {fileType, "steps is required"},
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

func TestNodesToAdd(t *testing.T) {
	cases := map[string]struct {
		want scenario.NodesToAdd
		file bool
	}{
		"worker-1=3":    {scenario.NodesToAdd{Template: "worker-1", Count: 3}, false},
		"gpu.yaml=1":    {scenario.NodesToAdd{Template: "gpu.yaml", Count: 1}, true},
		"dir/a=b=2":     {scenario.NodesToAdd{Template: "dir/a=b", Count: 2}, true},
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
