// Package fgd is the policy of Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing
// Workloads with Fragmentation Gradient Descent" (USENIX ATC 2023), from the formulas of its
// sections 3 and 4, and the method of its authors' measurements, for comparisons.
//
// Facts that are not in the formulas are from the authors' simulator,
// github.com/hkust-adsl/kubernetes-scheduler-simulator: the rounding of the score
// (pkg/simulator/plugin/fgd_score.go), the typical pods, and that the GPUs of a node of another
// model are of no use to a pod (pkg/utils/frag.go). Of the nodes with the highest score, its copy
// of the scheduler chooses the first one by name (pkg/scheduler/core/generic_scheduler.go). How
// pods are drawn is in pkg/simulator/simulator.go, and how their results are averaged in
// experiments/analysis/merge_alloc_discrete.py.
package fgd

import (
	"math"
	"slices"
	"strings"
)

// whole is the amount of a GPU.
const whole = 1000

// Demand is the request of a pod.
type Demand struct {
	// CPU is in thousandths of a core.
	CPU int64
	// GPU is in thousandths of a GPU: less than 1000 is a share of one GPU, any other amount is a
	// number of whole GPUs.
	GPU int64
	// Models are the models of GPUs of which the pod requires one, separated by |, or "" if it may
	// have any.
	Models string
}

func (d Demand) accepts(model string) bool {
	if d.Models == "" {
		return true
	}
	for m := range strings.SplitSeq(d.Models, "|") {
		if m == model {
			return true
		}
	}
	return false
}

// Part returns the amount that a pod takes of each GPU, and the number of GPUs.
func (d Demand) Part() (each, gpus int64) {
	if d.GPU < whole {
		return d.GPU, min(d.GPU, 1)
	}
	return whole, d.GPU / whole
}

// Node is the free room of a node.
type Node struct {
	// CPU is in thousandths of a core.
	CPU int64
	// GPUs are the free amounts of the GPUs, in thousandths.
	GPUs  []int64
	Model string
}

// fragment returns F_n(m), how much of the free GPUs a pod cannot use: all of it if the pod cannot
// run on the node or needs no GPU, else the free amounts of GPUs with less than it needs of one.
func (n Node) fragment(d Demand) float64 {
	each, gpus := d.Part()
	var free, tooSmall int64
	for _, left := range n.GPUs {
		free += left
		if left < each {
			tooSmall += left
		} else {
			gpus--
		}
	}
	if d.GPU == 0 || gpus > 0 || d.CPU > n.CPU || !d.accepts(n.Model) {
		return float64(free)
	}
	return float64(tooSmall)
}

// Class is the pods of a workload with the same request.
type Class struct {
	Demand
	// Share is their share of the workload.
	Share float64
}

// Workload is the pods that a cluster has to run, M in the paper.
type Workload []Class

// Typical returns the most frequent requests of pods, with or without GPUs, that are together 95
// percent of them or more: the authors' typical pods.
func Typical(demands []Demand) Workload {
	const popularity = 0.95
	index := map[Demand]int{}
	var all Workload
	for _, d := range demands {
		if _, ok := index[d]; !ok {
			index[d] = len(all)
			all = append(all, Class{Demand: d})
		}
		all[index[d]].Share++
	}
	slices.SortStableFunc(all, func(a, b Class) int { return int(b.Share - a.Share) })
	sum, count := 0.0, 0
	for ; sum < popularity*float64(len(demands)); count++ {
		sum += all[count].Share
	}
	all = all[:count]
	for i := range all {
		all[i].Share /= sum
	}
	return all
}

// Fragment returns F_n(M): how much of the free GPUs of a node a pod of the workload cannot use on
// average, in thousandths of a GPU.
func (w Workload) Fragment(n Node) float64 {
	sum := 0.0
	for _, class := range w {
		sum += class.Share * n.fragment(class.Demand)
	}
	return sum
}

// Score returns the score of a node where F_n(M) shrinks by an amount, in thousandths of a GPU: a
// whole number from 0 to 100, 50 if it stays the same.
func Score(descent float64) float64 { return math.Floor(100 / (1 + math.Exp(-descent/whole))) }

// Place returns the GPUs for a pod with the highest score, by their indices, the first ones of
// equal ones; and that score, of the amount by which F_n(M) shrinks. The pod has room on the node.
func (w Workload) Place(n Node, d Demand, score func(descent float64) float64) (gpus []int, best float64) {
	before := w.Fragment(n)
	after := Node{CPU: n.CPU - d.CPU, GPUs: slices.Clone(n.GPUs), Model: n.Model}
	each, count := d.Part()
	if each < whole && count > 0 {
		return w.share(before, after, each, score)
	}
	for i, left := range n.GPUs {
		if left >= each && int64(len(gpus)) < count {
			gpus = append(gpus, i)
			after.GPUs[i] -= each
		}
	}
	return gpus, score(before - w.Fragment(after))
}

// share chooses the GPU of a pod that needs a part of it. The CPU of the pod is taken off the node.
func (w Workload) share(before float64, n Node, amount int64, score func(float64) float64) ([]int, float64) {
	chosen, best := -1, 0.0
	for i, left := range n.GPUs {
		if left < amount || slices.Contains(n.GPUs[:i], left) {
			continue
		}
		n.GPUs[i] -= amount
		if s := score(before - w.Fragment(n)); chosen < 0 || s > best {
			chosen, best = i, s
		}
		n.GPUs[i] = left
	}
	return []int{chosen}, best
}
