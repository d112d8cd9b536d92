//go:build linux

package gpus

import (
	"math"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
	"github.com/pmk-sched/pmk-sched/test/internal/fgd"
	"github.com/pmk-sched/pmk-sched/test/internal/samples"
	"github.com/pmk-sched/pmk-sched/test/internal/trace"
)

// score returns how well each node suits a pod; only the order counts. The lists have the same
// length.
type score func(pod *corev1.Pod, nodes []int) []float64

// policies score the nodes that have room for a pod. In all of them the plugin filters by device.
// It also chooses the device, unless the policy does.
var policies = []struct {
	name string
	// percentage is the part of the nodes that are scored, as percentageOfNodesToScore.
	percentage int
	choose     func(x *filling, seed uint64) score
}{
	{"random", 100, func(_ *filling, seed uint64) score { return random(seed) }},
	{"least-allocated", 100, func(x *filling, _ uint64) score { return x.leastAllocated }},
	{"best-fit", 100, func(x *filling, _ uint64) score { return x.bestFit }},
	{"fgd", 100, func(x *filling, _ uint64) score { return x.descend(x.first) }},
	{"fgd-ties-by-chance", 100, func(x *filling, seed uint64) score { return x.descend(x.byChance(random(seed))) }},
	{"gpupacking", 100, func(x *filling, _ uint64) score { return x.steepest }},
	{"gpupacking-scoring-40-percent", 40, func(x *filling, _ uint64) score { return x.steepest }},
	{"gpupacking-scoring-10-percent", 10, func(x *filling, _ uint64) score { return x.steepest }},
	{"gpupacking-ties-by-chance", 100, func(x *filling, seed uint64) score { return x.byChance(random(seed)) }},
	{"gpupacking-6-steps", 100, func(x *filling, _ uint64) score { return x.inSteps(6) }},
	{"gpupacking-12-steps", 100, func(x *filling, _ uint64) score { return x.inSteps(12) }},
	{"gpupacking-24-steps", 100, func(x *filling, _ uint64) score { return x.inSteps(24) }},
	{"gpupacking-without-steps", 100, func(x *filling, _ uint64) score { return x.inSteps(1e6) }},
}

// BenchmarkPolicies fills the cluster without a scheduler, for each workload once for each of ten
// draws. It compares changes of the plugin, before BenchmarkAllocatedGPUs measures them among the
// other plugins of a scheduler.
func BenchmarkPolicies(b *testing.B) {
	nodes, pods := trace.Read(b)
	nodes = sample(b, nodes, 1)
	all := results{nodes: len(nodes)}
	for _, w := range trace.Workloads() {
		b.Run(w.Name, func(b *testing.B) {
			made := w.Make(nodes, pods)
			for _, p := range policies {
				b.Run(p.name, func(b *testing.B) {
					for b.Loop() {
						for _, seed := range seeds(b) {
							drawn, capacity := draw(made, nodes, seed)
							x := newFilling(b, nodes, drawn, p.percentage)
							allocated := allocation(drawn, x.fill(drawn, p.choose(x, seed)), capacity)
							all.add(result{w.Name, p.name, seed, allocated})
						}
					}
					all.tables().report(b, p.name, w.Name)
				})
			}
		})
	}
	all.tables().log(b)
	simple := []string{"random", "least-allocated", "best-fit"}
	all.tables().checkAbove(b, samples.Claim(page, "| GPUPacking | 95.3 (95.1–95.5) | 95.4 (95.2–95.6) |"), 1,
		[]string{"default"}, simple)
	all.tables().checkAbove(b, samples.Claim(page, "GPUPacking is not the best everywhere, and close to FGD in most workloads"),
		-0.5, allWorkloads(), append(simple, "fgd", "fgd-ties-by-chance"))
	if *update {
		all.picture(b, line{"gpupacking", "GPUPacking"}, line{"fgd", "FGD"}, line{"best-fit", "best fit"},
			line{"least-allocated", "LeastAllocated"}, line{"fgd-ties-by-chance", "FGD, by chance"},
			line{"random", "by chance"})
	}
}

// steepest is the plugin.
func (x *filling) steepest(pod *corev1.Pod, nodes []int) []float64 {
	var list []scheduler.NodeScore
	for _, i := range nodes {
		list = append(list, scheduler.NodeScore{Name: x.nodes[i].Node().Name, Score: x.valueOf(pod, i)})
	}
	if status := x.plugin.NormalizeScore(x.b.Context(), plugintest.NewState(), pod, list); !status.IsSuccess() {
		x.b.Fatal(status)
	}
	scores := make([]float64, len(nodes))
	for j := range list {
		scores[j] = float64(list[j].Score)
	}
	return scores
}

// inSteps is the plugin with another number of steps of a raw score, which is a constant in the
// plugin: the measure of the policy of the paper, with the plugin's workload and choice of the
// device.
func (x *filling) inSteps(steps float64) score {
	const noDevices = 1 // of the plugin
	workload := x.requestsOfGPUs()
	place := func(pod *corev1.Pod, node int) ([]int, float64) {
		return x.placeOnFullest(workload, demandOf(pod), node)
	}
	x.value = func(pod *corev1.Pod, node int) int64 {
		if len(x.free[node]) == 0 {
			return noDevices
		}
		_, descent := place(pod, node)
		return int64(math.Floor(descent*steps/trace.Whole + 1e-6))
	}
	x.devices = func(pod *corev1.Pod, node int) []int { devices, _ := place(pod, node); return devices }
	return x.steepest
}

// descend is the policy of the paper, which chooses the device too. highest chooses among the nodes
// with the highest score: in the authors' simulator the first one by name, in a kube-scheduler one
// by chance.
func (x *filling) descend(highest score) score {
	var demands []fgd.Demand
	for _, pod := range x.drawn {
		demands = append(demands, demandOf(pod))
	}
	workload := fgd.Typical(demands)
	x.value = func(pod *corev1.Pod, node int) int64 {
		_, best := workload.Place(x.room(node), demandOf(pod), fgd.Score)
		return int64(best)
	}
	x.devices = func(pod *corev1.Pod, node int) []int {
		devices, _ := workload.Place(x.room(node), demandOf(pod), fgd.Score)
		return devices
	}
	return highest
}

// first prefers the nodes with the greatest value. The nodes are in the order of their names, and
// the first one of equal nodes gets the pod.
func (x *filling) first(pod *corev1.Pod, nodes []int) []float64 {
	scores := make([]float64, len(nodes))
	for j, i := range nodes {
		scores[j] = float64(x.valueOf(pod, i))
	}
	return scores
}

// byChance prefers the nodes with the greatest value, and chooses among them by chance.
func (x *filling) byChance(chance score) score {
	return func(pod *corev1.Pod, nodes []int) []float64 {
		scores := chance(pod, nodes) // below 1
		for j, i := range nodes {
			scores[j] += float64(x.valueOf(pod, i))
		}
		return scores
	}
}

// random is a choice by chance.
func random(seed uint64) score {
	source := rand.New(rand.NewPCG(seed, 1))
	return func(_ *corev1.Pod, nodes []int) []float64 {
		scores := make([]float64, len(nodes))
		for j := range scores {
			scores[j] = source.Float64()
		}
		return scores
	}
}

// leastAllocated prefers nodes with much free CPU and memory, as NodeResourcesFit does by default.
func (x *filling) leastAllocated(_ *corev1.Pod, nodes []int) []float64 {
	scores := make([]float64, len(nodes))
	for j, i := range nodes {
		has, used := x.whole[i], x.whole[i].minus(x.left[i])
		scores[j] = -float64(used.cpu)/float64(has.cpu) - float64(used.memory)/float64(has.memory)
	}
	return scores
}

// bestFit prefers nodes with little free CPU and GPU, in relation to the largest node, as the
// policy of that name in the paper.
func (x *filling) bestFit(_ *corev1.Pod, nodes []int) []float64 {
	scores := make([]float64, len(nodes))
	for j, i := range nodes {
		scores[j] = -float64(x.left[i].cpu)/128000 - float64(x.left[i].gpu)/8000
	}
	return scores
}
