package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

const perf = `
- name: Basic
  defaultPodTemplatePath: pod.yaml
  featureGates: {Gate: true}
  workloadTemplate:
  - {opcode: createNodes, countParam: $nodes, nodeTemplatePath: node.yaml, labelNodePrepareStrategy: {labelKey: zone, labelValues: [moon, mars]}}
  - {opcode: createNodes, count: 1, uniqueNodeLabelStrategy: {labelKey: kubernetes.io/hostname}}
  - {opcode: createNodes, count: 0}
  - {opcode: createNodes, count: 1, nodeTemplatePath: node.yaml, labelNodePrepareStrategy: {labelKey: zone, labelValue: venus}}
  - {opcode: createNamespaces, prefix: sched, count: 2}
  - {opcode: createNamespaces, prefix: team, count: 1, namespaceTemplatePath: namespace.yaml}
  - {opcode: createPods, countParam: $before, namespace: sched-1}
  - {opcode: barrier}
  - {opcode: createPods, countParam: $measured, podTemplatePath: other.yaml, collectMetrics: true}
  - {opcode: createPods, countParam: $before, collectMetrics: true}
  workloads:
  - {name: small, labels: [short], threshold: 3, params: {nodes: 3, before: 1, measured: 2}, featureGates: {Other: false}}
  - {name: incomplete, params: {nodes: 3}}
- name: Plain
  workloadTemplate:
  - {opcode: createPods, count: 2, collectMetrics: true}
  workloads: [{name: small}]
- name: Churn
  workloadTemplate: [{opcode: churn, mode: recreate}]
  workloads: [{name: small}]
- name: Volumes
  workloadTemplate: [{opcode: createPods, count: 3, persistentVolumeTemplatePath: pv.yaml}]
  workloads: [{name: small}]
- name: Unmeasured
  workloadTemplate: [{opcode: createPods, count: 3}]
  workloads: [{name: small}]
- name: One
  workloadTemplate: [{opcode: createPods, count: 1, collectMetrics: true}]
  workloads: [{name: small}]
- name: After
  workloadTemplate: [{opcode: createPods, count: 3, collectMetrics: true}, {opcode: createPods, count: 3}]
  workloads: [{name: small}]
- name: Missing
  workloadTemplate: [{opcode: createPods, count: 3, podTemplatePath: none.yaml}]
  workloads: [{name: small}]
- name: Broken
  workloadTemplate: [{opcode: createNodes, count: 3, nodeTemplatePath: broken.yaml}]
  workloads: [{name: small}]
- name: Namespace
  workloadTemplate: [{opcode: createNamespaces, count: 3, namespaceTemplatePath: none.yaml}]
  workloads: [{name: small}]
- name: Label
  workloadTemplate: [{opcode: createNodes, count: 3, labelNodePrepareStrategy: {labelKey: zone, labelValues: [moon, 3]}}]
  workloads: [{name: small}]
- name: Count
  workloadTemplate: [{opcode: createNodes, countParam: size}]
  workloads: [{name: negative, params: {size: -1}}, {name: part, params: {size: 1.5}}, {name: text, params: {size: many}}, {name: none}]
`

func template(path string) ([]byte, error) {
	switch path {
	case "pod.yaml", "other.yaml":
		return fmt.Appendf(nil, "kind: Pod\nmetadata: {generateName: %s-}\n", strings.TrimSuffix(path, ".yaml")), nil
	case "node.yaml":
		return []byte("kind: Node\nmetadata: {name: perf, labels: {pool: a}}\n"), nil
	case "namespace.yaml":
		return []byte("kind: Namespace\nmetadata: {generateName: x-, labels: {team: b}}\n"), nil
	case "broken.yaml":
		return []byte(": ["), nil
	}
	return nil, errors.New("no file " + path)
}

// encoded returns objects as JSON.
func encoded(t *testing.T, all []map[string]any) (lines []string) {
	t.Helper()
	for _, o := range all {
		line, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(line))
	}
	return lines
}

const (
	newNodeStatus = `"status":{"allocatable":{"cpu":"4","memory":"32Gi","pods":"110"},` +
		`"capacity":{"cpu":"4","memory":"32Gi","pods":"110"}}}`
	newPodSpec = `"spec":{"containers":[{"image":"registry.k8s.io/pause:3.10","name":"pause",` +
		`"resources":{"requests":{"cpu":"%s","memory":"%s"}}}]}}`
)

func TestPerfWorkloadBecomesObjects(t *testing.T) {
	w, err := parsePerf("perf.yaml", []byte(perf), "Basic/small", template)
	if err != nil {
		t.Fatal(err)
	}
	for what, tt := range map[string]struct {
		got  []map[string]any
		want []string
	}{
		"objects": {w.Objects, []string{
			`{"kind":"Node","metadata":{"labels":{"pool":"a","zone":"moon"},"name":"perf-000000"}}`,
			`{"kind":"Node","metadata":{"labels":{"pool":"a","zone":"mars"},"name":"perf-000001"}}`,
			`{"kind":"Node","metadata":{"labels":{"pool":"a","zone":"moon"},"name":"perf-000002"}}`,
			`{"apiVersion":"v1","kind":"Node","metadata":{"labels":{"kubernetes.io/hostname":"node-000003"},` +
				`"name":"node-000003"},` + newNodeStatus,
			`{"kind":"Node","metadata":{"labels":{"pool":"a","zone":"venus"},"name":"perf-000004"}}`,
			`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"sched-0"}}`,
			`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"sched-1"}}`,
			`{"kind":"Namespace","metadata":{"labels":{"team":"b"},"name":"team-0"}}`,
		}},
		"before": {w.Before, []string{`{"kind":"Pod","metadata":{"name":"pod-000000","namespace":"sched-1"}}`}},
		"measured": {w.Measured, []string{
			`{"kind":"Pod","metadata":{"name":"other-000001","namespace":"namespace-8"}}`,
			`{"kind":"Pod","metadata":{"name":"other-000002","namespace":"namespace-8"}}`,
			`{"kind":"Pod","metadata":{"name":"pod-000003","namespace":"namespace-9"}}`,
		}},
	} {
		if diff := cmp.Diff(tt.want, encoded(t, tt.got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	notes := []string{"feature gates of the workload are not set: Other, Gate"}
	if diff := cmp.Diff(notes, w.Notes); diff != "" || w.Name != "Basic/small" {
		t.Errorf("%s, notes (-want +got):\n%s", w.Name, diff)
	}
	plain, err := parsePerf("perf.yaml", []byte(perf), "Plain/small", template)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"pod-000001","namespace":"namespace-0"},` +
		fmt.Sprintf(newPodSpec, "100m", "500Mi")
	if got := encoded(t, plain.Measured); len(got) != 2 || got[1] != want || len(plain.Notes) > 0 {
		t.Errorf("notes %q, pods %q", plain.Notes, got)
	}
}

func TestPerfWorkloadsThatAreRefused(t *testing.T) {
	for which, want := range map[string]string{
		"":                 "--case is required",
		"Basic/none":       "perf.yaml has no workload Basic/none",
		"Basic/incomplete": "operation 7: createPods: the workload has no parameter $before",
		"Churn/small":      `operation 1: "churn" is not supported: use barrier, createNamespaces, createNodes, createPods`,
		"Volumes/small":    "operation 1: persistentVolumeTemplatePath of createPods is not supported",
		"Unmeasured/small": "0 pods are measured",
		"One/small":        "1 pod is measured (collectMetrics): expected at least 2",
		"Broken/small":     "operation 1: createNodes: read template broken.yaml: ",
		"Namespace/small":  "operation 1: createNamespaces: no file none.yaml",
		"Label/small":      "operation 1: createNodes: invalid labelValues [moon 3]: must be texts",
		"Count/negative":   "operation 1: createNodes: invalid count -1: must be a number",
		"Count/part":       "invalid count 1.5: must be a number",
		"Count/text":       "invalid count many: must be a number",
		"Count/none":       "the workload has no parameter size",
		"After/small":      "operation 2: createPods: pods after those that are measured are not supported",
		"Missing/small":    "no file none.yaml",
	} {
		_, err := parsePerf("perf.yaml", []byte(perf), which, template)
		if err == nil || !strings.Contains(err.Error(), want) || !problem.IsInvalid(err) {
			t.Errorf("%s: got %v, want %s", which, err, want)
		}
	}
	const some = "Basic/small, Basic/incomplete, Plain/small, Churn/small, Volumes/small, Unmeasured/small, One/small, " +
		"After/small, Missing/small, Broken/small, Namespace/small, Label/small and 4 more"
	for which, want := range map[string]string{"": "the file has " + some, "Basic/none": "it has " + some} {
		_, err := parsePerf("perf.yaml", []byte(perf), which, template)
		if diff := cmp.Diff([]string{want}, problem.Hints(err)); diff != "" {
			t.Errorf("%q: hints (-want +got):\n%s", which, diff)
		}
	}
	if _, err := parsePerf("perf.yaml", []byte("kind: Pod"), "a/b", template); err == nil || !problem.IsInvalid(err) {
		t.Errorf("a file that is not a list: %v", err)
	}
}

func TestNamesOfAWorkloadAreShortened(t *testing.T) {
	all := strings.Split("abcdefghijklm", "")
	for n, want := range map[int]string{0: "", 1: "a", 12: "a, b, c, d, e, f, g, h, i, j, k, l",
		13: "a, b, c, d, e, f, g, h, i, j, k, l and 1 more"} {
		if got := firstNames(all[:n]); got != want {
			t.Errorf("%d names: %q", n, got)
		}
	}
}

func TestAlikeHasNodesInZones(t *testing.T) {
	w := alike(4, 2)
	node := func(number, zone int) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"labels":{"kubernetes.io/hostname":"bench-0000%d",`+
			`"topology.kubernetes.io/zone":"zone-%d"},"name":"bench-0000%[1]d"},`, number, zone) + newNodeStatus
	}
	pod := func(number int) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"app":"bench"},"name":"pod-00000%d",`+
			`"namespace":"pmk-sched-bench"},`, number) + fmt.Sprintf(newPodSpec, "10m", "16Mi")
	}
	if diff := cmp.Diff([]string{node(0, 0), node(1, 1), node(2, 2), node(3, 0)}, encoded(t, w.Objects)); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{pod(0), pod(1)}, encoded(t, w.Measured)); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
	if w.Name != "Alike/2Pods" || len(w.Before) > 0 || len(w.Notes) > 0 {
		t.Errorf("got %+v", w)
	}
}
