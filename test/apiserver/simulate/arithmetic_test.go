//go:build linux && releases

package simulate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
)

// How many copies fit follows from the resources of the nodes, and the scheduler reports the reason
// why the next copy does not fit.
func TestAsManyCopiesFitAsArithmeticSays(t *testing.T) {
	t.Parallel()
	const four = `cpu: "4", memory: 8Gi, pods: "110"`
	one := nodeWith("a", four, "", "")
	two := one + nodeWith("b", four, "", "")
	three := two + nodeWith("c", four, "", "")
	const spread = "topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, " +
		"labelSelector: {matchLabels: {app: web}}}]"
	const apart = "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: " +
		"kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}]}}"
	const taint = "taints: [{key: gpu, effect: NoSchedule}]"
	cases := map[string]struct {
		snapshot, manifests string
		want                int
		reason              string
	}{
		"CPU":                      {three, deployment("web", 1, requesting("cpu: 1"), ""), 12, "Insufficient cpu"},
		"CPU that does not divide": {three, deployment("web", 1, requesting("cpu: 1500m"), ""), 6, "Insufficient cpu"},
		"memory": {two, deployment("web", 1, requesting("cpu: 100m, memory: 3Gi"), ""), 4,
			"Insufficient memory"},
		"pods": {nodeWith("a", `cpu: "4", memory: 8Gi, pods: "5"`, "", ""),
			deployment("web", 1, requesting(""), ""), 5, "Too many pods"},
		"an extended resource": {nodeWith("a", four+`, example.com/gpu: "2"`, "", "") + nodeWith("b", four, "", ""),
			deployment("web", 1, "{name: main, image: web, resources: {limits: {example.com/gpu: 1}}}",
				""), 2, "Insufficient example.com/gpu"},
		"next to a running pod": {one + pod("running", "3", "", "nodeName: a", "phase: Running"),
			deployment("web", 1, requesting("cpu: 500m"), ""), 2, "Insufficient cpu"},
		"next to a finished pod": {one + pod("done", "3", "", "nodeName: a", "phase: Succeeded"),
			deployment("web", 1, requesting("cpu: 2"), ""), 2, "Insufficient cpu"},
		"next to a pending pod": {one + pod("waits", "3", "", "", ""), deployment("web", 1, requesting("cpu: 2"), ""), 2,
			"Insufficient cpu"},
		"a node selector": {one + nodeWith("b", four, "pool: web", ""),
			deployment("web", 1, requesting("cpu: 1"), "nodeSelector: {pool: web}"), 4, "didn't match"},
		"anti-affinity": {three, deployment("web", 1, requesting("cpu: 1"), apart), 3, "anti-affinity"},
		"host ports": {three,
			deployment("web", 1, "{name: main, image: web, ports: [{containerPort: 80, hostPort: 80}]}", ""), 3, "free ports"},
		"a taint": {one + nodeWith("b", four, "", taint), deployment("web", 1, requesting("cpu: 1"), ""),
			4, "taint"},
		"a taint that is tolerated": {one + nodeWith("b", four, "", taint),
			deployment("web", 1, requesting("cpu: 1"), "tolerations: [{key: gpu, operator: Exists}]"), 8, "Insufficient cpu"},
		"a cordoned node": {one + nodeWith("b", four, "", "unschedulable: true"),
			deployment("web", 1, requesting("cpu: 1"), ""), 4, "unschedulable"},
		"spread over zones": {nodeWith("a", four, "zone: a", "") + nodeWith("b", four, "zone: b", "") + nodeWith("c",
			four, "zone: b", ""), deployment("web", 1, requesting("cpu: 1"), spread), 9, "topology spread"},
		"two workloads": {nodeWith("a", `cpu: "10", memory: 8Gi, pods: "110"`, "", ""), deployment("web", 1,
			requesting("cpu: 1"), "") + deployment("db", 1, requesting("cpu: 2"), ""), 3, "Insufficient cpu"},
		"several replicas": {two, deployment("web", 3, requesting("cpu: 1"), ""), 2, "Insufficient cpu"},
		"an init container": {one, deployment("web", 1, requesting("cpu: 1"),
			"initContainers: [{name: first, image: web, resources: {requests: {cpu: 2}}}]"), 2, "Insufficient cpu"},
		"two containers": {one,
			deployment("web", 1, requesting("cpu: 600m")+", {name: side, image: web, resources: {requests: {cpu: 400m}}}",
				""), 4, "Insufficient cpu"},
		"limits without requests": {one,
			deployment("web", 1, "{name: main, image: web, resources: {limits: {cpu: 2}}}", ""), 2, "Insufficient cpu"},
		"overhead": {one, deployment("web", 1, requesting("cpu: 900m"), "overhead: {cpu: 100m}"), 4,
			"Insufficient cpu"},
		"nothing": {one, deployment("web", 1, requesting("cpu: 100"), ""), 0, "Insufficient cpu"},
		"a Job": {one,
			"apiVersion: batch/v1\nkind: Job\nmetadata: {name: web, namespace: shop}\nspec: {parallelism: 2, template: {spec: " +
				"{containers: [" + requesting("cpu: 1") + "]}}}\n", 2, "Insufficient cpu"},
		"a pod that evicts no other": {one + pod("low", "3", "", "nodeName: a\npriority: -10", "phase: Running"),
			deployment("web", 1, requesting("cpu: 1"), ""), 1, "Insufficient cpu"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := simulateAdd(t, tc.snapshot, tc.manifests, 1, scenario.DefaultLimit)
			c := r.Capacity
			if c == nil || c.Copies != tc.want || c.Limited || c.Stop == nil || !strings.Contains(c.Stop.Reason, tc.reason) {
				t.Errorf("got %+v, want %d copies and %q", c, tc.want, tc.reason)
				if c != nil && c.Stop != nil {
					t.Errorf("stopped by %+v", *c.Stop)
				}
			}
			if placed := min(1, tc.want) * c.PodsPerCopy; len(r.Placements) != placed || len(r.Evicted) != 0 {
				t.Errorf("placements %v, want %d; evicted %v", r.Placements, placed, r.Evicted)
			}
		})
	}
}

// nodeWith returns a node with resources and more of its labels and specification, in flow style.
func nodeWith(name, resources, labels, spec string) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: Node
metadata: {name: %[1]s, labels: {kubernetes.io/hostname: %[1]s, %[3]s}}
spec: {%[4]s}
status: {capacity: {%[2]s}, allocatable: {%[2]s}}
`, name, resources, labels, spec)
}
