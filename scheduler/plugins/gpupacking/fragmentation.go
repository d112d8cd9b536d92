package gpupacking

// The fragmentation measure in this file and the choice of the node and device with its smallest
// increase follow Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with
// Fragmentation Gradient Descent", USENIX ATC 2023, sections 3 and 4.

// demand is the CPU and GPU request of a pod.
type demand struct {
	// cpu is in thousandths of a core.
	cpu int64
	// gpu is in the resource's unit: less than a whole device is a share of one device, any more is a
	// number of whole devices.
	gpu int64
}

// room is a node's free room.
type room struct {
	cpu int64
	// whole is a whole device's amount, and free the free amount on each device.
	whole int64
	free  []int64
	// model is the model of the devices, "" if it is unknown.
	model string
}

func (r room) total() int64 {
	sum := int64(0)
	for _, left := range r.free {
		sum += left
	}
	return sum
}

// divisible reports whether a demand is a share of one device or a number of whole devices.
func (r room) divisible(gpu int64) bool { return gpu < r.whole || gpu%r.whole == 0 }

func (r room) fits(d demand) bool {
	if d.cpu > r.cpu || !r.divisible(d.gpu) {
		return false
	}
	if d.gpu <= 0 {
		return true
	}
	each, needed := r.part(d.gpu)
	for _, left := range r.free {
		if left >= each {
			needed--
		}
	}
	return needed <= 0
}

// part returns the amount that a demand takes from each device, and the number of devices.
func (r room) part(gpu int64) (each int64, devices int) {
	if gpu < r.whole {
		return gpu, 1
	}
	return r.whole, int(gpu / r.whole)
}

// fragment returns the amount of the free devices that a pod cannot use, F_n(m) in the paper: all
// of it if the pod cannot run on the node or needs no device, else the free amounts on devices with
// less than the pod needs from one device.
func (r room) fragment(m demand) int64 {
	if m.gpu <= 0 || !r.fits(m) {
		return r.total()
	}
	each, _ := r.part(m.gpu)
	sum := int64(0)
	for _, left := range r.free {
		if left < each {
			sum += left
		}
	}
	return sum
}

// class is the pods of a workload that need the same.
type class struct {
	demand
	// share is their share of the workload; all shares are 1 together.
	share float64
	// choosy is the part of them that requires models of devices, and models the part that accepts
	// each.
	choosy float64
	models map[string]float64
}

// accepts returns the part of the pods that may use devices of a model.
func (c class) accepts(model string) float64 {
	if c.choosy == 0 {
		return 1
	}
	return 1 - c.choosy + c.models[model]
}

// workload is the pods that the cluster has to run, M in the paper.
type workload []class

// fragment returns the mean amount of the free devices that the workload's pods cannot use, F_n(M)
// in the paper. Pods that require another model can use none of them.
func (w workload) fragment(r room) float64 {
	total, sum := float64(r.total()), 0.0
	for _, m := range w {
		accept := m.accepts(r.model)
		sum += m.share * (accept*float64(r.fragment(m.demand)) + (1-accept)*total)
	}
	return sum
}

// place returns the devices for a pod with which the fragment grows least, and by how much it
// grows; less than 0 if it shrinks. ok is false if the pod does not fit. Of devices that are equal
// in this, it takes the one with the least room, then the first.
func (w workload) place(r room, d demand) (devices []int, growth float64, ok bool) {
	if !r.fits(d) {
		return nil, 0, false
	}
	before := w.fragment(r)
	after := room{cpu: r.cpu - d.cpu, whole: r.whole, free: append([]int64(nil), r.free...), model: r.model}
	each, needed := r.part(d.gpu)
	switch {
	case d.gpu <= 0:
		return nil, w.fragment(after) - before, true
	case d.gpu >= r.whole: // whole devices that are free are all the same
		for i, left := range r.free {
			if left >= each && len(devices) < needed {
				devices = append(devices, i)
				after.free[i] -= each
			}
		}
		return devices, w.fragment(after) - before, true
	}
	best := -1
	for i, left := range r.free {
		if left < each || contains(r.free[:i], left) {
			continue
		}
		after.free[i] -= each
		grown := w.fragment(after) - before
		after.free[i] = left
		if best < 0 || grown < growth || grown == growth && left < r.free[best] {
			best, growth = i, grown
		}
	}
	return []int{best}, growth, true
}

// contains reports whether a device with so much room is in the list.
func contains(list []int64, left int64) bool {
	for _, other := range list {
		if other == left {
			return true
		}
	}
	return false
}
