package bench

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

const perf = `
- name: Basic
  defaultPodTemplatePath: pod.yaml
  featureGates: {Gate: true}
  workloadTemplate:
  - {opcode: createNodes, countParam: $nodes, nodeTemplatePath: node.yaml, labelNodePrepareStrategy: {labelKey: zone, labelValues: [moon, mars]}}
  - {opcode: createNodes, count: 1, uniqueNodeLabelStrategy: {labelKey: kubernetes.io/hostname}}
  - {opcode: createNamespaces, prefix: sched, count: 2}
  - {opcode: createPods, countParam: $before, namespace: sched-1}
  - {opcode: barrier}
  - {opcode: createPods, countParam: $measured, podTemplatePath: other.yaml, collectMetrics: true}
  workloads:
  - {name: small, labels: [short], threshold: 3, params: {nodes: 3, before: 2, measured: 4}}
  - {name: incomplete, params: {nodes: 3}}
- name: Plain
  workloadTemplate:
  - {opcode: createPods, count: 3, collectMetrics: true}
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
- name: After
  workloadTemplate: [{opcode: createPods, count: 3, collectMetrics: true}, {opcode: createPods, count: 3}]
  workloads: [{name: small}]
- name: Missing
  workloadTemplate: [{opcode: createPods, count: 3, podTemplatePath: none.yaml}]
  workloads: [{name: small}]
`

func template(path string) ([]byte, error) {
	switch path {
	case "pod.yaml", "other.yaml":
		return fmt.Appendf(nil,
			"apiVersion: v1\nkind: Pod\nmetadata: {generateName: %s-}\nspec: {containers: [{name: pause, image: pause}]}\n",
			strings.TrimSuffix(path, ".yaml")), nil
	case "node.yaml":
		return []byte("apiVersion: v1\nkind: Node\nmetadata: {generateName: perf-}\nstatus: {allocatable: {cpu: 4}}\n"), nil
	}
	return nil, errors.New("no file " + path)
}

// names returns the namespaces and names of objects.
func names(all []map[string]any) (names []string) {
	for _, o := range all {
		names = append(names, fmt.Sprint(o["kind"], " ", metadataOf(o)["namespace"], " ", nameOf(o)))
	}
	return names
}

func TestPerfWorkloadBecomesObjects(t *testing.T) {
	w, err := ParsePerf("perf.yaml", []byte(perf), "Basic/small", template)
	if err != nil {
		t.Fatal(err)
	}
	for what, tt := range map[string]struct {
		got  []map[string]any
		want []string
	}{
		"objects": {w.Objects, []string{
			"Node <nil> perf-000000", "Node <nil> perf-000001", "Node <nil> perf-000002", "Node <nil> node-000003",
			"Namespace <nil> sched-0", "Namespace <nil> sched-1",
		}},
		"before": {w.Before, []string{"Pod sched-1 pod-000000", "Pod sched-1 pod-000001"}},
		"measured": {w.Measured, []string{"Pod namespace-5 other-000002", "Pod namespace-5 other-000003",
			"Pod namespace-5 other-000004", "Pod namespace-5 other-000005"}},
	} {
		if got := names(tt.got); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", what, got, tt.want)
		}
	}
	labels := func(i int) map[string]any {
		l, _ := metadataOf(w.Objects[i])["labels"].(map[string]any)
		return l
	}
	if labels(0)["zone"] != "moon" || labels(1)["zone"] != "mars" || labels(2)["zone"] != "moon" ||
		labels(3)["kubernetes.io/hostname"] != "node-000003" {
		t.Errorf("labels %v %v %v %v", labels(0), labels(1), labels(2), labels(3))
	}
	if w.Name != "Basic/small" || len(w.Notes) != 1 || !strings.Contains(w.Notes[0], "Gate") {
		t.Errorf("%s, notes %q", w.Name, w.Notes)
	}
	plain, err := ParsePerf("perf.yaml", []byte(perf), "Plain/small", template)
	if err != nil || len(plain.Measured) != 3 || plain.Measured[0]["spec"] == nil {
		t.Errorf("%+v: %v", plain, err)
	}
}

func TestPerfWorkloadsThatAreRefused(t *testing.T) {
	for which, want := range map[string]string{
		"":                 "--case is required",
		"Basic/none":       "perf.yaml has no workload Basic/none",
		"Basic/incomplete": "operation 4: createPods: the workload has no parameter $before",
		"Churn/small":      `operation 1: "churn" is not supported: use barrier, createNamespaces, createNodes, createPods`,
		"Volumes/small":    "operation 1: persistentVolumeTemplatePath of createPods is not supported",
		"Unmeasured/small": "0 pods are measured",
		"After/small":      "operation 2: createPods: pods after those that are measured are not supported",
		"Missing/small":    "no file none.yaml",
	} {
		_, err := ParsePerf("perf.yaml", []byte(perf), which, template)
		if err == nil || !strings.Contains(err.Error(), want) || !problem.IsInvalid(err) {
			t.Errorf("%s: got %v, want %s", which, err, want)
		}
	}
	if _, err := ParsePerf("perf.yaml", []byte("kind: Pod"), "a/b", template); err == nil || !problem.IsInvalid(err) {
		t.Errorf("a file that is not a list: %v", err)
	}
}

func TestAlikeHasNodesInZones(t *testing.T) {
	w := Alike(2, 3)
	want := []string{"Pod pmk-sched-bench pod-000000", "Pod pmk-sched-bench pod-000001", "Pod pmk-sched-bench pod-000002"}
	if got := names(w.Measured); !slices.Equal(got, want) || len(w.Objects) != 2 || len(w.Before) > 0 {
		t.Errorf("measured %q, %d nodes, %d before", got, len(w.Objects), len(w.Before))
	}
	labels, _ := metadataOf(w.Objects[1])["labels"].(map[string]any)
	if labels["topology.kubernetes.io/zone"] != "zone-1" || labels["kubernetes.io/hostname"] != "bench-00001" {
		t.Errorf("labels %v", labels)
	}
}
