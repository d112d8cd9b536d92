//go:build linux

package plugins

import (
	"fmt"
	"sync"
)

// machine is a node of the model, with the part of a kubelet that gives containers their CPUs, and
// an agent that writes the NodeResourceTopology.
type machine struct {
	name  string
	room  sums
	zones []int64 // free cores of each zone; nil without a topology
	// registered is set when the node exists, gone when it is being drained.
	registered, gone bool
	// written are the zones in the NodeResourceTopology.
	written []int64

	// writing is held while the kubelet reports that a pod has started, and from the moment at which
	// the agent reads the zones until it has written them: a topology that is written after the start
	// of a pod includes it. NUMAAware depends on that.
	writing sync.Mutex
	wake    chan struct{} // for the agent
}

// admit gives a pod its zones, as the topology manager does with the policy single-numa-node and
// the scope container. The zone of a single container is any with room, because devices and memory
// may decide about it; those of two containers are the first ones with room, as NUMAAware assumes.
// The caller holds m.mu.
func (m *model) admit(r *record, on *machine) {
	if on.zones == nil {
		return
	}
	cores := alignedCPU(r.pod)
	for _, need := range cores {
		zone, first := -1, 0
		if len(cores) == 1 {
			first = m.random.IntN(len(on.zones))
		}
		for i := range on.zones {
			if z := (first + i) % len(on.zones); on.zones[z] >= need {
				zone = z
				break
			}
		}
		if zone < 0 {
			m.violate(fmt.Sprintf("the kubelet of node %s rejects pod %s with %d cores: free in zones %d, in the topology %d",
				on.name, r.key(), cores, on.zones, on.written), r.key(), on.name)
			return
		}
		on.zones[zone] -= need
		r.zones = append(r.zones, zone)
	}
	on.nudge()
}

// release gives the zones of a pod back. The caller holds m.mu.
func (m *model) release(r *record) {
	on := m.machines[r.pod.Spec.NodeName]
	if on == nil {
		return
	}
	for i, zone := range r.zones {
		on.zones[zone] += alignedCPU(r.pod)[i]
	}
	r.zones = nil
	on.nudge()
}

func (on *machine) nudge() {
	select {
	case on.wake <- struct{}{}:
	default:
	}
}
