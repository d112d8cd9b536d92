//go:build linux && releases

package simulate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
)

// The outcomes that cluster-capacity publishes for its examples
// (github.com/kubernetes-sigs/cluster-capacity, README.md and doc/cluster-capacity.md). Where they
// do not specify the size of the nodes, this test uses a size that gives the same outcome. The
// example with a quota of four pods in the namespace is left out: a simulation has no quotas.
func TestAnswersOfClusterCapacity(t *testing.T) {
	t.Parallel()
	const small = "apiVersion: v1\nkind: Pod\nmetadata: {name: small-pod, namespace: shop}\nspec: {containers: [{name: " +
		"main, image: web, resources: {%[1]s: {cpu: %[2]s, memory: 100Mi}}}], %[3]s}\n"
	smallPod := fmt.Sprintf(small, "requests", "150m", "")
	nodes := func(n int, cpu string) (manifests string) {
		for i := range n {
			manifests += nodeWith("kube-node-"+strconv.Itoa(1+i), `cpu: "`+cpu+`", memory: 4Gi, pods: "110"`, "", "")
		}
		return manifests
	}
	running := func(node string, n int, cpu string) (manifests string) {
		for i := range n {
			manifests += pod(fmt.Sprintf("running-%s-%d", node, i), cpu, "", "nodeName: "+node, "phase: Running")
		}
		return manifests
	}
	cases := map[string]struct {
		snapshot, manifests string
		perNode             []int // in ascending order
		reasons             []string
	}{
		"README, four nodes with 2 CPUs": {nodes(4, "2"), smallPod, []int{13, 13, 13, 13},
			[]string{"0/4 nodes", "4 Insufficient cpu"}},
		"README, next to six pods": {
			nodes(4, "2") + running("kube-node-1", 2, "150m") + running("kube-node-2", 1, "150m") + running("kube-node-3", 2,
				"150m") + running("kube-node-4", 1, "150m"),
			smallPod, []int{11, 11, 12, 12}, []string{"0/4 nodes", "4 Insufficient cpu"},
		},
		"README, in a pod": {nodes(2, "4"), fmt.Sprintf(small, "limits", "150m", ""), []int{26, 26},
			[]string{"0/2 nodes", "2 Insufficient cpu"}},
		"README of 2016, one node": {nodes(1, "4") + running("kube-node-1", 1, "500m"), smallPod, []int{23},
			[]string{"0/1 nodes", "1 Insufficient cpu"}},
		"cluster-capacity.md, a pod of genpod": {
			nodes(1, "2") + nodeWith("kube-node-2", `cpu: "1", memory: 4Gi, pods: "110"`, "region: hpc, load: high", ""),
			fmt.Sprintf(small, "requests", "200m", "nodeSelector: {region: hpc, load: high}"), []int{5}, []string{"0/2 nodes",
				"1 Insufficient cpu", "1 node(s) didn't match"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := 0
			for _, n := range tc.perNode {
				want += n
			}
			r := simulateAdd(t, tc.snapshot, tc.manifests, want, scenario.DefaultLimit)
			on := map[string]int{}
			for _, p := range r.Placements {
				on[p.Node]++
			}
			var perNode []int
			for _, n := range on {
				perNode = append(perNode, n)
			}
			slices.Sort(perNode)
			if diff := cmp.Diff(tc.perNode, perNode); diff != "" {
				t.Errorf("pods on each node (-want +got):\n%s", diff)
			}
			c := r.Capacity
			if c == nil || c.Copies != want || c.Limited || c.Stop == nil {
				t.Fatalf("got %+v, want %d copies", c, want)
			}
			for _, reason := range tc.reasons {
				if !strings.Contains(c.Stop.Reason, reason) {
					t.Errorf("got reason %q, want %q", c.Stop.Reason, reason)
				}
			}
		})
	}
	t.Run("limit", func(t *testing.T) { // its --max-limit
		if c := simulateAdd(t, nodes(4, "2"), smallPod, 1, 4).Capacity; c.Copies != 5 || !c.Limited || c.Stop != nil {
			t.Errorf("got %+v, want 5 copies and no more", c)
		}
	})
}
