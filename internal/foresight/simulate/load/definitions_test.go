package load

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// A kind that the bundled plugins read, or that a snapshot knows, has its own plural and scope. A
// definition that is given is not made again. Groups of Kubernetes are served without one.
func TestMissingDefinitionsAreMade(t *testing.T) {
	var objects []map[string]any
	for _, text := range []string{
		`{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"PodGroup","metadata":{"name":"a"}}`,
		`{"apiVersion":"topology.node.k8s.io/v1alpha2","kind":"NodeResourceTopology","metadata":{"name":"n"}}`,
		`{"apiVersion":"topology.node.k8s.io/v1alpha1","kind":"NodeResourceTopology","metadata":{"name":"m"}}`,
		`{"apiVersion":"example.com/v1","kind":"Policy","metadata":{"name":"a"}}`,
		`{"apiVersion":"example.com/v1","kind":"Policy","metadata":{"name":"b","namespace":"shop"}}`,
		`{"apiVersion":"metrics.k8s.io/v1beta1","kind":"NodeMetrics","metadata":{"name":"n"}}`,
		`{"apiVersion":"example.com/v1","kind":"Rack","metadata":{"name":"r"}}`,
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"rackz.example.com"},"spec":{"group":"example.com","scope":"Cluster","names":{"kind":"Rack","plural":"rackz"}}}`,
		`{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{"name":"i"}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}`,
	} {
		o, err := snapshot.Decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	nodes, err := snapshot.CustomKind("nodes.metrics.k8s.io")
	if err != nil {
		t.Fatal(err)
	}
	nodes.Name = "NodeMetrics"
	got := map[string][]string{}
	for _, d := range missingDefinitions(objects, []*snapshot.Kind{nodes}) {
		spec := d["spec"].(map[string]any)
		values := []string{spec["scope"].(string), spec["names"].(map[string]any)["kind"].(string)}
		for _, v := range spec["versions"].([]any) {
			values = append(values, v.(map[string]any)["name"].(string))
		}
		got[d["metadata"].(map[string]any)["name"].(string)] = values
	}
	want := map[string][]string{
		"podgroups.scheduling.x-k8s.io":               {"Namespaced", "PodGroup", "v1alpha1"},
		"noderesourcetopologies.topology.node.k8s.io": {"Cluster", "NodeResourceTopology", "v1alpha2", "v1alpha1"},
		"policies.example.com":                        {"Namespaced", "Policy", "v1"},
		"nodes.metrics.k8s.io":                        {"Cluster", "NodeMetrics", "v1beta1"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
