package numaaware

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// naive is what placement.of returns, as a sum over all parts.
func (p *placement) naive(z int, name corev1.ResourceName) (sum int64) {
	for i := range p.count {
		if p.zone(i) == z {
			sum += p.parts[i][name]
		}
	}
	return sum
}

// The sums of a pod with many containers are kept while they are placed; those of a small pod are
// not. Both are the same.
func TestWhatManyPartsTakeIsAddedOnce(t *testing.T) {
	const many = 40
	parts := make([]amounts, many)
	for i := range parts {
		parts[i] = amounts{"cpu": int64(i + 1)}
	}
	zones := make([]zone, 3)
	p := placement{parts: parts}
	for i := range many {
		p.add(i%4-1, zones)
		for z := range zones {
			if got, want := p.of(z, "cpu"), p.naive(z, "cpu"); got != want {
				t.Fatalf("after %d parts: zone %d has %d, want %d", i+1, z, got, want)
			}
		}
	}
	if p.taken == nil {
		t.Error("all parts are read for each part")
	}
}

func TestPodsWithManyContainersAreAligned(t *testing.T) {
	w := newWorld(t, "", 1)
	w.show(topologyOf("n-0", "single-numa-node", "container", "20 64Gi 0", "20 64Gi 0"))
	for containers, fits := range map[int]bool{40: true, 41: false} {
		pod := podOf(fmt.Sprint("many-", containers))
		for range containers {
			pod.Spec.Containers = append(pod.Spec.Containers, container("1", 0, true))
		}
		if cycle := w.cluster.Schedule(t.Context(), w.plugin, pod); (cycle.Node != "") != fits {
			t.Errorf("%d containers: node %q", containers, cycle.Node)
		}
		w.plugin.Unreserve(t.Context(), nil, pod, "n-0")
	}
}

func TestTopologiesThatTakeTooLongToReadAreRefused(t *testing.T) {
	var zones []string
	for range mostZones { // and one of another type
		zones = append(zones, "1 1Gi 0")
	}
	if _, err := readTopology(topologyOf("n", "single-numa-node", "pod", zones[1:]...)); err != nil {
		t.Errorf("as many zones as it may have: %v", err)
	}
	if _, err := readTopology(topologyOf("n", "single-numa-node", "pod", zones...)); err == nil ||
		err.Error() != "it has 257 zones, more than 256" {
		t.Errorf("many zones: %v", err)
	}
	object := topologyOf("n", "single-numa-node", "pod", "1 1Gi 0")
	var resources []interface{}
	for i := range mostResources + 1 {
		resources = append(resources, map[string]interface{}{"name": fmt.Sprint("example.com/r-", i), "available": "1",
			"allocatable": "1"})
	}
	object.Object["zones"] = []interface{}{map[string]interface{}{"type": "Node", "resources": resources[1:]}}
	if _, err := readTopology(object); err != nil {
		t.Errorf("as many resources as it may have: %v", err)
	}
	object.Object["zones"] = []interface{}{map[string]interface{}{"type": "Node", "resources": resources}}
	if _, err := readTopology(object); err == nil || !strings.Contains(err.Error(), "more than 256 resources") {
		t.Errorf("many resources: %v", err)
	}
}
