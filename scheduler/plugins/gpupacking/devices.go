package gpupacking

import (
	"sort"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// maxDevices is the maximum number of devices on a node. The node's kubelet writes their number in
// its status, and the plugin keeps an entry for each.
const maxDevices = 256

// longestIndices limits the annotation with a pod's devices, which its user may have written:
// maxDevices indices of three digits, with commas and spaces. The annotations of all pods on a node
// are read for each pod that is placed.
const longestIndices = 5 * maxDevices

// roomOf returns a node's free room without one of its pods. ok is false if the node has no
// devices, or more than maxDevices.
func (g *GPUPacking) roomOf(node scheduler.NodeInfo, without types.UID) (r room, ok bool) {
	allocatable, used := node.Allocatable(), node.Requested()
	amount := allocatable.Scalar[g.settings.resource]
	r.whole = g.settings.units
	if r.whole == 0 {
		if count := allocatable.Scalar[g.settings.count]; count > 0 {
			r.whole = amount / count
		}
	}
	if r.whole <= 0 || amount < r.whole {
		return r, false
	}
	count := amount / r.whole
	if count > maxDevices {
		g.logOversized(node.Node().Name, count)
		return r, false
	}
	if g.settings.modelLabel != "" {
		r.model = node.Node().Labels[g.settings.modelLabel]
	}
	r.cpu = allocatable.MilliCPU - used.MilliCPU
	r.free = make([]int64, count)
	for i := range r.free {
		r.free[i] = r.whole
	}
	if used.Scalar[g.settings.resource] == 0 {
		return r, true
	}
	var unknown []*corev1.Pod
	for i := 0; i < node.PodCount(); i++ {
		pod := node.Pod(i)
		if pod.UID == without && without != "" {
			r.cpu += g.demandOn(pod).cpu
			continue
		}
		taken, ok := g.reservationOf(pod.UID)
		if !ok {
			taken = reservation{gpu: g.demandOn(pod).gpu, devices: g.annotatedDevices(pod)}
		}
		if taken.gpu > 0 && !r.take(taken.gpu, taken.devices) {
			unknown = append(unknown, pod)
		}
	}
	sort.Slice(unknown, func(i, j int) bool { return unknown[i].UID < unknown[j].UID })
	for _, pod := range unknown {
		r.guess(g.demandOn(pod))
	}
	return r, true
}

// logOversized logs once for each node that it has too many devices.
func (g *GPUPacking) logOversized(node string, count int64) {
	if _, logged := g.oversized.LoadOrStore(node, true); !logged {
		g.log.Info(0, "GPUPacking ignores the GPUs of a node: it has too many", "node", node,
			"devices", count, "most", maxDevices)
	}
}

// annotatedDevices returns the devices in a pod's annotation, nil if there are none.
func (g *GPUPacking) annotatedDevices(pod *corev1.Pod) []int {
	text := pod.Annotations[g.settings.annotations.Index]
	if text == "" || len(text) > longestIndices {
		return nil
	}
	var devices []int
	for _, part := range strings.Split(text, ",") {
		index, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil {
			return nil
		}
		devices = append(devices, index)
	}
	return devices
}

// reservation is a pod's part of the devices of its node. The request of an extended resource never
// changes.
type reservation struct {
	gpu     int64
	devices []int
}

// reservationOf returns what Reserve chose for a pod.
func (g *GPUPacking) reservationOf(uid types.UID) (reservation, bool) {
	assumed, _ := g.assumed.Get(uid)
	r, ok := assumed.Value.(reservation)
	return r, ok
}

// indices returns the annotation for devices.
func indices(devices []int) string {
	var parts []string
	for _, index := range devices {
		parts = append(parts, strconv.Itoa(index))
	}
	return strings.Join(parts, ",")
}

// take takes an amount off devices. It does nothing and returns false if these cannot be the
// devices of a pod with that request.
func (r room) take(gpu int64, devices []int) bool {
	each, needed := r.part(gpu)
	if !r.divisible(gpu) || len(devices) != needed {
		return false
	}
	for i, index := range devices {
		if index < 0 || index >= len(r.free) {
			return false
		}
		for _, other := range devices[:i] {
			if other == index {
				return false
			}
		}
	}
	for _, index := range devices {
		if r.free[index] -= each; r.free[index] < 0 {
			r.free[index] = 0
		}
	}
	return true
}

// guess takes an amount off the devices that a pod most likely has, if that is unknown: another
// scheduler has bound it.
func (r room) guess(d demand) {
	d.cpu, r.cpu = 0, 0 // it is taken off already
	if devices, _, ok := (workload)(nil).place(r, d); ok {
		r.take(d.gpu, devices)
		return
	}
	for left := d.gpu; left > 0; {
		most := 0
		for i := range r.free {
			if r.free[i] > r.free[most] {
				most = i
			}
		}
		if r.free[most] == 0 {
			return
		}
		part := left
		if part > r.free[most] {
			part = r.free[most]
		}
		r.free[most] -= part
		left -= part
	}
}
