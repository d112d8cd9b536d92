//go:build linux

package plugins

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// space is what is free on a node.
type space struct {
	room    sums
	devices []int64
	zones   []int64 // nil without a topology
}

// spaces returns what is free on the nodes that can get pods, as the scheduler has to know it when
// nothing happens in the cluster. Nodes for which a pod is nominated are left out, since they keep
// room for it. The caller holds m.mu.
func (m *model) spaces() map[string]*space {
	all := map[string]*space{}
	for name, on := range m.machines {
		if on.gone || len(m.sorted(func(r *record) bool {
			return r.pending() && r.pod.Status.NominatedNodeName == name
		})) > 0 {
			continue
		}
		pods := m.on(name)
		free := on.room.clone()
		for _, r := range pods {
			free.add(r.need(), -1)
		}
		devices, err := on.devices(pods)
		if err != nil {
			continue // checkDevices reports it
		}
		all[name] = &space{room: free, devices: devices, zones: slices.Clone(on.written)}
	}
	return all
}

// take takes the room for a pod, and reports whether there is enough. Its CPUs are taken from all
// zones, since the scheduler does not know which one it gets.
func (s *space) take(pod *corev1.Pod, need sums) bool {
	if !s.room.covers(need) || needsTopology(pod) && s.zones == nil || !s.fitsZones(alignedCPU(pod)) {
		return false
	}
	devices := slices.Clone(s.devices)
	if amount := need[gpuMilli]; amount > 0 && !takeDevices(devices, amount) {
		return false
	}
	s.devices = devices
	s.room.add(need, -1)
	for _, cores := range alignedCPU(pod) {
		for z := range s.zones {
			s.zones[z] -= cores
		}
	}
	return true
}

// fitsZones reports whether each of the containers gets a zone, the first one with room.
func (s *space) fitsZones(containers []int64) bool {
	left := slices.Clone(s.zones)
	for _, cores := range containers {
		z := slices.IndexFunc(left, func(free int64) bool { return free >= cores })
		if z < 0 {
			return false
		}
		left[z] -= cores
	}
	return true
}

func takeDevices(free []int64, amount int64) bool {
	each, missing := amount, 1
	if amount >= wholeDevice {
		each, missing = wholeDevice, int(amount/wholeDevice)
	}
	for i := range free {
		if missing > 0 && free[i] >= each {
			free[i] -= each
			missing--
		}
	}
	return missing == 0
}

// placeable returns a text about a pending pod or gang for which there is room, or "". A pod that
// must fit into min is left out. The caller holds m.mu.
func (m *model) placeable() (text string, objects []string) {
	gangs := map[string][]*record{}
	for _, r := range m.sorted((*record).pending) {
		key := r.gang()
		switch {
		case r.pod.Labels[protectedLabel] == "false":
		case key != "":
			gangs[key] = append(gangs[key], r)
		case m.room(r, 1) > 0:
			return "pod " + r.key() + " is pending, " + message(r.pod), []string{r.key(), r.pod.Namespace, everything}
		}
	}
	for key, pending := range gangs {
		missing := max(1, m.missing(key))
		if len(pending) >= missing && m.room(pending[0], missing) >= missing {
			return fmt.Sprintf("gang %s is pending and lacks %d, %s", key, missing, message(pending[0].pod)),
				[]string{key, pending[0].pod.Namespace, everything}
		}
	}
	return "", nil
}

// missing returns how many pods a gang lacks.
func (m *model) missing(key string) int {
	g := m.gangs[key]
	if g == nil {
		return 1
	}
	return g.size - len(m.sorted(func(r *record) bool {
		return r.gang() == key && (r.takes() || r.pod.Status.Phase == corev1.PodSucceeded)
	}))
}

// room returns for how many pods like one there is room, at most a number.
func (m *model) room(r *record, most int) (n int) {
	if quota := m.teams[r.pod.Namespace]; quota != nil {
		left := quota.limits[len(quota.limits)-1].max.clone()
		for _, other := range m.sorted((*record).takes) {
			if other.pod.Namespace == r.pod.Namespace {
				left.add(other.need(), -1)
			}
		}
		for n < most && left.covers(r.need()) {
			left.add(r.need(), -1)
			n++
		}
		most = n
	}
	n = 0
	for _, s := range m.spaces() {
		for n < most && s.take(r.pod, r.need()) {
			n++
		}
	}
	return n
}
