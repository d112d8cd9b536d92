package v1alpha1_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/test/golden"
)

const testHead = "apiVersion: pmk-sched.io/v1alpha1\nkind: SchedulingTest\n"

func TestDecodeTestReadsAllWords(t *testing.T) {
	got, err := v1alpha1.DecodeTest([]byte(testHead + `metadata: {name: example}
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
	if got.Name != "example" || got.Kind != v1alpha1.TestKind || len(got.Steps) != 1 {
		t.Errorf("got %+v", got)
	}
	text, err := yaml.Marshal(got.Expect)
	if err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "testdata/expectations.yaml", text)
	var words []string
	for _, e := range got.Expect {
		words = append(words, strings.Join(e.Words(), " "))
	}
	if diff := cmp.Diff(strings.Fields("node nodes nodeLabels pending pending evicted moved evicts spread requests copies "+
		"emptyNodes utilization sameAs"), words); diff != "" {
		t.Errorf("words (-want +got):\n%s", diff)
	}
	want := []v1alpha1.TestObjects{
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

func TestPercentileOfUtilization(t *testing.T) {
	for of, want := range map[string]int{"p0": 0, "p9": 9, "p99": 99, "p100": 100, "p101": -1, "mean": -1, "": -1} {
		got, ok := (&v1alpha1.Utilization{Of: of}).Percentile()
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%q: got %d, want %d", of, got, want)
		}
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
		"{workload: 'a/[', evicted: true}":                   `line 4: invalid pattern "a/["`,
		"{pod: a, evicts: 'b/['}":                            `line 4: invalid pattern "b/["`,
		"{pod: a, node: 'n['}":                               `line 4: invalid pattern "n["`,
		"{pod: a, nodes: [b, 'n[']}":                         `line 4: invalid pattern "n["`,
		"{pod: a, nodeLabels: {}}":                           "line 4: nodeLabels is empty",
		"{copies: {}}":                                       "line 4: copies needs steps",
		"{copies: 1, count: 1}":                              "line 4: count does not apply to copies",
		"{workload: a, copies: 1}":                           "line 4: copies is about the whole cluster",
		"{labels: {a: b}, utilization: {resource: cpu}}":     "line 4: utilization is about the whole cluster",
		"{pod: a, spread: {over: zone}}":                     "line 4: expected a limit",
		"{pod: a, spread: {over: zone, each: {}}}":           "line 4: expected a limit",
		"{pod: a, spread: {over: zone, each: 1}, count: 1}":  "line 4: count does not apply to spread",
		"{pod: a, requests: {resource: cpu}}":                "line 4: expected a limit",
		"{pod: a, node: a, count: -1%}":                      `line 4: invalid amount "-1%"`,
		"{pod: a, node: a, count: 1000001%}":                 `line 4: invalid amount "1000001%"`,
		"{pod: a, node: a, count: x%}":                       `line 4: invalid amount "x%"`,
		"{pod: a, pending: [x]}":                             "line 4: expected a part of the scheduler's reason",
		"{steps: [{scenario: restart}], copies: 1}":          "line 4: copies needs steps whose last one is add",
		"{steps: [{files: [add]}], copies: 1}":               "line 4: copies needs steps whose last one is add",
	} {
		cases[testHead+"expect:\n- "+text+"\n"] = want
	}
	for objects, want := range map[string]string{
		"[{count: 3}]": "line 3: expected a path, an object, or count and object",
		"[{object: {apiVersion: v1, metadata: {name: a}}}]":   "line 3: expected a path, an object",
		"[{apiVersion: v1, kind: Node}]":                      "line 3: the object has no metadata.name",
		"[{apiVersion: v1, kind: Node, metadata: {name: n}}]": "line 3: metadata.name is false, not text",
		"[{count: 0, object: {apiVersion: v1, kind: Node}}]":  `line 3: invalid number "0"`,
		"[{count: 100001, object: {apiVersion: v1}}]":         `line 3: invalid number "100001"`,
		"[{count: 2, objects: {apiVersion: v1}}]":             "line 3: expected a path, an object",
		"[{counts: 2, object: {apiVersion: v1}}]":             "line 3: expected a path, an object",
		"[{count: 2, object: {kind: Node}}]":                  "line 3: the object has no metadata.name",
		"[{apiVersion: v1, metadata: {name: ''}}]":            "line 3: the object has no metadata.name",
		"[{apiVersion: v1, metadata: 3}]":                     "line 3: expected an object with metadata.name",
		"[{count: 2, object: [a]}]":                           "line 3: expected an object with metadata.name",
		"[{apiVersion: v1, kind: Pod, kind: Node}]":           "line 3: read object",
		"['']":               "line 3: expected a path, an object",
		"[3]":                "line 3: expected a path, an object",
		"[[apiVersion, v1]]": "line 3: expected a path, an object",
	} {
		cases[testHead+"objects: "+objects+"\nexpect: [{pod: a, node: b}]\n"] = want
	}
	refused := refusals{}
	for text, want := range cases {
		_, err := v1alpha1.DecodeTest([]byte(text))
		refused[strings.ReplaceAll(text, testHead, "…\n")] = err
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	refused.equal(t, "refused-tests.txt")
}

func TestIsTestFindsTheKind(t *testing.T) {
	for text, want := range map[string]bool{
		testHead: true, `"kind": "SchedulingTest"`: true, "kind: Pod\n": false, "a:\n  kind: SchedulingTest\n": false, "": false,
	} {
		if got := v1alpha1.IsTest([]byte(text)); got != want {
			t.Errorf("%q: got %t", text, got)
		}
	}
}

func TestSchemaOfTestsHasEveryLimit(t *testing.T) {
	limits := reflect.TypeFor[v1alpha1.Limits]()
	var names []string
	for i := range limits.NumField() {
		names = append(names, limits.Field(i).Tag.Get("yaml"))
	}
	if diff := cmp.Diff(names, v1alpha1.LimitFields()); diff != "" {
		t.Errorf("(-fields +LimitFields):\n%s", diff)
	}
}
