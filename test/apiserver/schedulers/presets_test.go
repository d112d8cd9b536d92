//go:build linux

package schedulers

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// A pod that takes a tenth of a node finds one that is nearly full, one that is half full and one
// that is empty.
func TestNodeThatAPresetPrefersByWhatIsTaken(t *testing.T) {
	want := map[string]string{
		"default": "empty", "spread": "empty", "throughput": "empty", "topology-spread": "empty",
		"binpack": "full", "capacity-ratio": "half",
	}
	for _, preset := range profiles.Presets() {
		t.Run(preset.Name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, preset.Name, "taken")
			c.node("full", 90, nil)
			c.node("half", 50, nil)
			c.node("empty", 0, nil)
			c.start()
			if got := c.place(c.pod("p", 10)); got != want[preset.Name] {
				t.Errorf("placed on %s, want %s", got, want[preset.Name])
			}
		})
	}
}

// A burst of small pods: binpack leaves nodes empty for large ones, spread uses all.
func TestNodesThatAPresetUsesForABurst(t *testing.T) {
	for preset, want := range map[string]int{"binpack": 1, "spread": 3, "default": 3} {
		t.Run(preset, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, preset, "burst")
			for _, name := range []string{"a", "b", "c"} {
				c.node(name, 0, nil)
			}
			c.start()
			used := map[string]bool{}
			for i := range 6 {
				used[c.place(c.pod(fmt.Sprintf("p%d", i), 5))] = true
			}
			if len(used) != want {
				t.Errorf("6 pods use %d nodes, want %d", len(used), want)
			}
		})
	}
}

// The article's weight of 3 for the emptiest node outweighs the pod's preferred node affinity. The
// default weight of 1 does not.
func TestSpreadOutweighsAPreferenceForALoadedNode(t *testing.T) {
	for preset, want := range map[string]string{"default": "preferred", "spread": "empty"} {
		t.Run(preset, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, preset, "preference")
			c.node("preferred", 80, map[string]string{"disk": "fast"})
			c.node("empty", 0, nil)
			c.start()
			pod := c.pod("p", 2)
			pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 100,
					Preference: corev1.NodeSelectorTerm{
						MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: corev1.NodeSelectorOpIn,
							Values: []string{"fast"}}},
					}}},
			}}
			if got := c.place(pod); got != want {
				t.Errorf("placed on %s, want %s", got, want)
			}
		})
	}
}

// The second pod of a Service goes to the other zone although the node there is half full; by
// default it goes to an empty node.
func TestTopologySpreadTakesTheOtherZone(t *testing.T) {
	for preset, want := range map[string]string{"default": "a", "topology-spread": "b"} {
		t.Run(preset, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, preset, "zones")
			service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.ServiceSpec{
				Selector: map[string]string{"service": "web"}, Ports: []corev1.ServicePort{{Port: 80}},
			}}
			_, err := c.Kube.CoreV1().Services(c.name).Create(c.ctx, service, metav1.CreateOptions{})
			c.must(err)
			zone := func(name string) map[string]string { return map[string]string{corev1.LabelTopologyZone: name} }
			c.node("a1", 0, zone("a"))
			c.node("a2", 0, zone("a"))
			c.node("b1", 50, zone("b"))
			c.start()
			var nodes []string
			for i := range 2 {
				pod := c.pod(fmt.Sprintf("p%d", i), 2)
				pod.Labels = map[string]string{"service": "web"}
				nodes = append(nodes, c.place(pod))
			}
			if nodes[0][:1] != "a" || nodes[1][:1] != want {
				t.Errorf("placed on %v, want zone a and then zone %s", nodes, want)
			}
		})
	}
}

// feasible matches the log line of kube-scheduler after it has bound the pod p. The count excludes
// the nodes of other tests.
var feasible = regexp.MustCompile(`"Successfully bound pod to node" pod="[^"]*/p" .* feasibleNodes=(\d+)`)

// On a large cluster the preset throughput stops looking when it has enough nodes. 100 is
// Kubernetes' least (minFeasibleNodesToFind); by default it looks for nearly half of 400 nodes.
func TestThroughputLooksAtFewerNodes(t *testing.T) {
	looked := map[string]int{}
	for _, preset := range []string{"default", "throughput"} {
		t.Run(preset, func(t *testing.T) {
			c := newCluster(t, preset, "many")
			c.nodes(400)
			c.start()
			c.place(c.pod("p", 1))
			run.Eventually(t, "kube-scheduler logs how many nodes it found", func(context.Context) (bool, string) {
				found := feasible.FindStringSubmatch(c.scheduler.Log())
				if found != nil {
					looked[preset], _ = strconv.Atoi(found[1])
				}
				return found != nil, ""
			})
		})
	}
	if looked["throughput"] != 100 || looked["default"] < 150 {
		t.Errorf("stopped looking after %v nodes; throughput should after 100, default later", looked)
	}
}
