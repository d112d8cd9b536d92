package scenario_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
)

func TestObjectsAndExpectationsOfATest(t *testing.T) {
	const text = fileType + `metadata: {name: example}
objects:
- cluster.yaml
- {apiVersion: v1, kind: Node, metadata: {name: a}, spec: {podCIDR: 10.0.0.0/24}}
- count: 2
  object: {apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {priority: 5}}
expect:
- {pod: web-1, node: a}
- {pod: shop/web-*, nodes: [a, b]}
- {pod: big, pending: Insufficient cpu}
- {pod: none, pending: ""}
- {pod: low, evicted: true}
`
	got, err := scenario.ParseTest("s.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []report.Expectation{
		{Pod: "default/web-1", Nodes: []string{"a"}},
		{Pod: "shop/web-*", Nodes: []string{"a", "b"}},
		{Pod: "default/big", Pending: true, Reason: "Insufficient cpu"},
		{Pod: "default/none", Pending: true},
		{Pod: "default/low", Evicted: true},
	}
	if diff := cmp.Diff(want, got.Expect); diff != "" {
		t.Errorf("expectations (-want +got):\n%s", diff)
	}
	if len(got.Objects) != 3 || got.Objects[0].Path != "cluster.yaml" {
		t.Fatalf("objects %+v", got.Objects)
	}
	var objects []map[string]any
	for _, source := range got.Objects[1:] {
		objects = append(objects, source.Make()...)
	}
	pod := func(name string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"priority": json.Number("5")}}
	}
	wanted := []map[string]any{
		{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": "a"}, "spec": map[string]any{
			"podCIDR": "10.0.0.0/24"}},
		pod("web-1"), pod("web-2"),
	}
	if diff := cmp.Diff(wanted, objects); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestTestsAreReadStrictly(t *testing.T) {
	const objects, expect = "objects: [a.yaml]\n", "expect: [{pod: a, node: b}]\n"
	cases := map[string]struct{ text, want string }{
		"no objects":      {fileType + expect, "read s.yaml: objects is required"},
		"no expectations": {fileType + objects, "read s.yaml: expect is required"},
		"steps": {fileType + objects + expect + "steps: [{scenario: pending}]\n",
			"read s.yaml:5:8: only `pmk-sched simulate run` reads this field"},
		"an unknown field": {fileType + objects + expect + "expected: []\n",
			"read s.yaml:5:1: unknown field expected"},
		"a count without object": {fileType + "objects: [{count: 3}]\n" + expect,
			"read s.yaml:3:11: expected a path, an object, or count and object"},
		"an object without count": {fileType + "objects: [{object: {apiVersion: v1, metadata: {name: a}}}]\n" + expect,
			"read s.yaml:3:11: expected a path, an object, or count and object"},
		"an object without a name": {fileType + "objects: [{apiVersion: v1, kind: Node}]\n" + expect,
			"read s.yaml:3:11: the object has no metadata.name"},
		"a name that is no text": {fileType + "objects: [{apiVersion: v1, kind: Node, metadata: {name: n}}]\n" + expect,
			"read s.yaml:3:11: metadata.name is false, not text"},
		"no pod": {fileType + objects + "expect: [{node: a}]\n", "read s.yaml:4:10: pod is required"},
		"no result": {fileType + objects + "expect: [{pod: a}]\n",
			"read s.yaml:4:10: expected one of node, nodes, pending and evicted"},
		"two results": {fileType + objects + "expect: [{pod: a, node: a, pending: x}]\n",
			"read s.yaml:4:10: expected one of"},
		"a reason that is no text": {fileType + objects + "expect: [{pod: a, pending: true}]\n",
			"read s.yaml:4:28: expected a part of the scheduler's reason"},
		"not evicted": {fileType + objects + "expect: [{pod: a, evicted: false}]\n",
			"read s.yaml:4:28: expected true"},
		"a malformed pattern": {fileType + objects + "expect: [{pod: 'a/[', node: a}]\n", `read s.yaml:4:10: pod "a/["`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := scenario.ParseTest("s.yaml", []byte(tc.text))
			if err == nil || !strings.Contains(err.Error(), tc.want) || !problem.IsInvalid(err) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
	_, err := scenario.ParseFile("s.yaml", []byte(fileType+objects))
	if err == nil || !strings.Contains(err.Error(), "read s.yaml:3:10: only `pmk-sched plugin test` reads this field") {
		t.Errorf("objects in a file with steps: got %v", err)
	}
}
