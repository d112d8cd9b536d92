//go:build linux

package plugins

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// wholeDevice is what a device has of the resource gpuMilli.
const wholeDevice = 1000

// team is a namespace with a quota.
type team struct {
	namespace string
	// limits are the values of max in the order of the changes.
	limits   []limit
	changing bool
}

// limit is a value of max, and the resource versions between which a scheduler may have known it.
// until is 0 while no scheduler is known to know the next value.
type limit struct {
	max         sums
	from, until int64
}

// most returns the largest max of a resource that the scheduler can have known while a pod was
// pending: the last pod that it counted before the pod was bound was within that.
func (t *team) most(name corev1.ResourceName, r *record) (most int64) {
	for _, l := range t.limits {
		if l.from <= r.bound && (l.until == 0 || l.until >= r.created) {
			most = max(most, l.max[name])
		}
	}
	return most
}

// checkBound checks the limits when a pod is bound. The caller holds m.mu.
func (m *model) checkBound(r *record) {
	node := r.pod.Spec.NodeName
	m.bindings++
	m.note(r.key()+" is bound to "+node+" "+r.pod.Annotations[gpuIndex], r.key(), node, r.pod.Namespace, r.gang())
	m.checkQuota(r)
	if on := m.machines[node]; on != nil {
		m.checkSums(r, on)
		m.checkDevices(r, on)
	}
}

func (m *model) checkQuota(r *record) {
	quota := m.teams[r.pod.Namespace]
	if quota == nil {
		return
	}
	used, since := sums{}, r.createdAt.Add(-lag)
	for _, other := range m.sorted((*record).takes) {
		if other.pod.Namespace == r.pod.Namespace {
			used.add(other.least(since), 1)
		}
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods, gpuMilli} {
		if most := quota.most(name, r); r.need()[name] > 0 && used[name] > most {
			m.violate(fmt.Sprintf("pod %s was bound beyond max: %s used %d, max %d", r.key(), name, used[name], most),
				r.key(), r.pod.Namespace)
		}
	}
}

func (m *model) checkSums(r *record, on *machine) {
	used, since := sums{}, r.createdAt.Add(-lag)
	for _, other := range m.on(on.name) {
		used.add(other.least(since), 1)
	}
	for name, amount := range r.need() {
		if amount > 0 && used[name] > on.room[name] {
			m.violate(fmt.Sprintf("pod %s was bound to node %s, which is full: %s used %d of %d", r.key(), on.name, name,
				used[name], on.room[name]), r.key(), on.name)
		}
	}
}

func (m *model) checkDevices(r *record, on *machine) {
	if r.need()[gpuMilli] == 0 {
		return
	}
	free, err := on.devices(m.on(on.name))
	if err != nil {
		m.violate(fmt.Sprintf("pod %s was bound to node %s: %v", r.key(), on.name, err), r.key(), on.name)
		return
	}
	if least := slices.Min(free); least < 0 {
		m.violate(fmt.Sprintf("pod %s was bound to node %s, device %q: a device is given twice, free %v", r.key(), on.name,
			r.pod.Annotations[gpuIndex], free), r.key(), on.name)
	}
}

// devices returns what is free of each device.
func (on *machine) devices(pods []*record) (free []int64, err error) {
	free = slices.Repeat([]int64{wholeDevice}, int(on.room[gpuMilli]/wholeDevice))
	for _, r := range pods {
		amount := r.need()[gpuMilli]
		if amount == 0 {
			continue
		}
		indices := strings.Split(r.pod.Annotations[gpuIndex], ",")
		if want := max(1, int(amount/wholeDevice)); len(indices) != want {
			return nil, fmt.Errorf("pod %s with %d has devices %q", r.key(), amount, r.pod.Annotations[gpuIndex])
		}
		for _, text := range indices {
			index, err := strconv.Atoi(text)
			if err != nil || index < 0 || index >= len(free) {
				return nil, fmt.Errorf("pod %s has device %q of %d", r.key(), text, len(free))
			}
			free[index] -= min(amount, wholeDevice)
		}
	}
	return free, nil
}

// checkGangs checks that no gang is bound in part, and returns a gang of which the scheduler may
// still be binding the rest, or "". A pod that was deleted since shortly before the first binding
// may have been counted by the scheduler, and after a restart the rest of a gang has to wait for
// room. The caller holds m.mu.
func (m *model) checkGangs() (incomplete string) {
	for _, g := range m.gangs {
		if g.firstBound == 0 {
			continue
		}
		g.interrupt = g.interrupt || m.restarted >= g.firstBound
		lost := 0
		for _, at := range g.lost {
			if at.After(g.firstBoundAt.Add(-lag)) {
				lost++
			}
		}
		if n := len(g.everBound); n+lost < g.size && !g.interrupt {
			incomplete = fmt.Sprintf("gang %s of %d: only %d pods were bound, %d were deleted before", g.key, g.size, n, lost)
			if time.Since(g.firstBoundAt) > lag {
				m.violate(incomplete, g.key)
			}
		}
	}
	return incomplete
}

// forgetGangs forgets gangs without pods. The caller holds m.mu.
func (m *model) forgetGangs() {
	for key := range m.gangs {
		if len(m.sorted(func(r *record) bool { return r.gang() == key })) == 0 {
			delete(m.gangs, key)
		}
	}
}
