package v1alpha1

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const testHead = "apiVersion: pmk-sched.io/v1alpha1\nkind: SchedulingTest\n"

func TestDecodeTestReadsAllWords(t *testing.T) {
	got, err := DecodeTest([]byte(testHead + `metadata: {name: example}
objects:
- cluster.yaml
- {apiVersion: v1, kind: Node, metadata: {name: a}, spec: {podCIDR: 10.0.0.0/24}}
- count: 2
  object: {apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {priority: 5}}
steps: [{scenario: add, files: [a.yaml]}]
expect:
- {name: first, pod: web-1, node: a}
- {pod: shop/web-*, nodes: [a, b], count: {atLeast: 1, below: 3}}
- {workload: web, nodeLabels: {pool: a}}
- {labels: {app: big}, pending: Insufficient cpu}
- {pod: none, pending: ""}
- {pod: low, evicted: false, count: 0}
- {pod: low, moved: true}
- {pod: a/*, evicts: low}
- {pod: a/*, spread: {over: zone, atLeast: 3, each: 2}}
- {pod: a/*, requests: {resource: memory, atMost: 64Gi}}
- {copies: 10}
- {emptyNodes: {labels: {pool: a}, above: 4}}
- {utilization: {resource: cpu, of: p99, below: 90%}}
- {sameAs: {preset: binpack}}
`))
	if err != nil {
		t.Fatal(err)
	}
	e := got.Expect
	if len(e) != 14 || e[0].Pod != "default/web-1" || e[2].Workload != "default/web" || e[7].Evicts != "default/low" {
		t.Errorf("got %+v", e)
	}
	if *e[1].Count.AtLeast != (Amount{1, "1"}) || e[5].Count.Exactly.Value != 0 || *e[4].Pending != "" ||
		e[8].Spread.Each.Exactly.Value != 2 || e[9].Requests.AtMost.Value != 64<<30 || e[12].Utilization.Below.Value != 0.9 {
		t.Errorf("amounts of %+v", e)
	}
	if n, ok := e[12].Utilization.Percentile(); n != 99 || !ok {
		t.Errorf("percentile %d, %t", n, ok)
	}
	want := []TestObjects{
		{Path: "cluster.yaml"},
		{Object: json.RawMessage(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"},"spec":{"podCIDR":"10.0.0.0/24"}}`),
			Line: 6},
		{Object: json.RawMessage(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"},"spec":{"priority":5}}`), Count: 2,
			Line: 8},
	}
	if diff := cmp.Diff(want, got.Objects); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestDecodeTestIsStrict(t *testing.T) {
	cases := map[string]string{
		"":                               "the file is empty",
		"kind: Scenario\nsteps: []\n":    `expected a SchedulingTest, got  "Scenario"`,
		testHead:                         "expect is required",
		testHead + "expected: []\n":      "line 3: unknown field expected",
		testHead + "expect: []\n---\n{}": "the file has a second document",
	}
	for text, want := range map[string]string{
		"{pod: a, nod: b}":                                   "line 4: unknown field nod",
		"{node: b}":                                          "line 4: node needs pod, workload or labels",
		"{pod: a}":                                           "line 4: expected one of node, nodes,",
		"{pod: a, node: a, pending: x}":                      "got node and pending",
		"{pod: a, pending: true}":                            "line 4: expected a part of the scheduler's reason",
		"{pod: 'a/[', node: a}":                              `line 4: invalid pattern "a/["`,
		"{pod: a, nodes: []}":                                "line 4: nodes is empty",
		"{pod: a, node: a, count: many}":                     `line 4: invalid amount "many"`,
		"{pod: a, node: a, count: {}}":                       "line 4: expected a limit",
		"{pod: a, node: a, count: {least: 1}}":               "line 4: unknown field least",
		"{pod: a, emptyNodes: {atLeast: 1}}":                 "line 4: emptyNodes is about the whole cluster",
		"{emptyNodes: {}}":                                   "line 4: expected a limit: exactly",
		"{copies: 3}":                                        "line 4: copies needs steps whose last one is add",
		"{copies: -3}":                                       `invalid amount "-3"`,
		"{pod: a, spread: {atLeast: 1}}":                     "line 4: spread needs over",
		"{pod: a, requests: {atLeast: 1}}":                   "line 4: requests needs resource",
		"{utilization: {resource: cpu, of: p101, above: 0}}": `line 4: invalid of "p101"`,
		"{utilization: {resource: cpu}}":                     "line 4: expected a limit",
		"{utilization: {below: 1}}":                          "line 4: utilization needs resource",
		"{sameAs: {}}":                                       "line 4: sameAs needs scheduler, preset or branch",
		"{sameAs: {branch: v1.24.3}, count: 3}":              "line 4: count does not apply to sameAs",
	} {
		cases[testHead+"expect:\n- "+text+"\n"] = want
	}
	for objects, want := range map[string]string{
		"[{count: 3}]": "line 3: expected a path, an object, or count and object",
		"[{object: {apiVersion: v1, metadata: {name: a}}}]":   "line 3: expected a path, an object",
		"[{apiVersion: v1, kind: Node}]":                      "line 3: the object has no metadata.name",
		"[{apiVersion: v1, kind: Node, metadata: {name: n}}]": "line 3: metadata.name is false, not text",
		"[{count: 0, object: {apiVersion: v1, kind: Node}}]":  `line 3: invalid number "0"`,
	} {
		cases[testHead+"objects: "+objects+"\nexpect: [{pod: a, node: b}]\n"] = want
	}
	for text, want := range cases {
		_, err := DecodeTest([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

func TestIsTestFindsTheKind(t *testing.T) {
	for text, want := range map[string]bool{
		testHead: true, `"kind": "SchedulingTest"`: true, "kind: Pod\n": false, "a:\n  kind: SchedulingTest\n": false, "": false,
	} {
		if got := IsTest([]byte(text)); got != want {
			t.Errorf("%q: got %t", text, got)
		}
	}
}

func TestSchemaOfTestsHasEveryLimit(t *testing.T) {
	limits := reflect.TypeFor[Limits]()
	var names []string
	for i := range limits.NumField() {
		names = append(names, limits.Field(i).Tag.Get("yaml"))
	}
	if diff := cmp.Diff(names, LimitFields()); diff != "" {
		t.Errorf("(-fields +LimitFields):\n%s", diff)
	}
}
