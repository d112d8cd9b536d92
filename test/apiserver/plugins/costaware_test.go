//go:build linux

package plugins

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/costaware"
)

// The examples of the plugin's README. The default plugins prefer the node that is not expected, or
// none.
func leastCost(t *testing.T, s subject) {
	x := s.start(t, "cost", profiles.Plugin{Name: costaware.Name, Weight: 100, Args: []byte(`
unpriced: Avoid
prices: [{value: m5.large, price: 0.096}, {value: m5.xlarge, price: 0.192}]
factors: [{label: capacity, value: spot, factor: 0.35}]
`)}, costaware.Rules)
	x.followsNodes(t, "begin")
	size := func(cpu, memory string) amounts {
		return amounts{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory}
	}
	for _, node := range []struct {
		pair, name string
		room       amounts
		labels     map[string]string
	}{
		{"size", "small", size("4", "16Gi"), map[string]string{"pmk-sched.io/price": "0.2"}},
		{"size", "large", size("16", "64Gi"), map[string]string{"pmk-sched.io/price": "0.6"}},
		{"shape", "cores", size("16", "16Gi"), map[string]string{"pmk-sched.io/price": "1"}},
		{"shape", "memory", size("4", "64Gi"), map[string]string{"pmk-sched.io/price": "1"}},
		{"discount", "spot", size("4", "16Gi"), map[string]string{
			corev1.LabelInstanceTypeStable: "m5.xlarge", "capacity": "spot"}},
		{"discount", "on-demand", size("4", "16Gi"), map[string]string{corev1.LabelInstanceTypeStable: "m5.large"}},
		{"unpriced", "dear", size("4", "16Gi"), map[string]string{"pmk-sched.io/price": "100"}},
		{"unpriced", "unknown", size("64", "256Gi"), nil},
	} {
		labels := map[string]string{"pair": node.pair}
		for key, value := range node.labels {
			labels[key] = value
		}
		x.node(t, node.name, node.room, labels)
	}
	x.followsNodes(t, "end")
	for _, c := range []struct {
		name, pair, cpu, memory, want string
	}{
		{"more-expensive-node", "size", "1", "4Gi", "large"},
		{"much-cpu", "shape", "2", "1Gi", "cores"},
		{"much-memory", "shape", "100m", "8Gi", "memory"},
		{"factor", "discount", "1", "4Gi", "spot"},
		{"without-price", "unpriced", "1", "4Gi", "dear"},
	} {
		pod := x.pod(c.name, size(c.cpu, c.memory))
		pod.Spec.NodeSelector["pair"] = c.pair
		x.create(t, pod)
		if got := x.nodeOf(t, c.name); got != c.want {
			t.Errorf("%s: placed on %s, want %s", c.name, got, c.want)
		}
	}
}
