//go:build linux

package gpus

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
	"github.com/pmk-sched/pmk-sched/test/internal/fgd"
	"github.com/pmk-sched/pmk-sched/test/internal/gputable"
	"github.com/pmk-sched/pmk-sched/test/internal/samples"
	"github.com/pmk-sched/pmk-sched/test/internal/trace"
)

// score returns how well each node suits a pod; only the order counts. The lists have the same
// length.
type score func(pod *corev1.Pod, nodes []int) []float64

// policy scores the nodes that have room for a pod.
type policy struct {
	name string
	// percentage is the part of the nodes that are scored, as percentageOfNodesToScore.
	percentage int
	choose     func(x *filling, seed int64) score
}

// withoutModels is the plugin without modelLabel.
const withoutModels = "gpupacking-without-models"

// policies are the policies that are compared. In all of them the plugin filters by device. It also
// chooses the device, unless the policy does.
var policies = []policy{
	{"random", 100, func(x *filling, seed int64) score { x.devices = x.anyDevices(seed); return random(seed) }},
	{"least-allocated", 100, func(x *filling, _ int64) score { return x.leastAllocated }},
	{"best-fit", 100, func(x *filling, _ int64) score { x.devices = x.fullest; return x.bestFit }},
	{"fgd", 100, func(x *filling, _ int64) score { return x.descend(x.first) }},
	{"fgd-ties-by-chance", 100, func(x *filling, seed int64) score { return x.descend(x.byChance(random(seed))) }},
	{"gpupacking", 100, func(x *filling, _ int64) score { return x.steepest }},
	{withoutModels, 100, func(x *filling, _ int64) score { return x.steepest }},
	{"gpupacking-scoring-40-percent", 40, func(x *filling, _ int64) score { return x.steepest }},
	{"gpupacking-scoring-10-percent", 10, func(x *filling, _ int64) score { return x.steepest }},
	{"gpupacking-ties-by-chance", 100, func(x *filling, seed int64) score { return x.byChance(random(seed)) }},
}

// BenchmarkPolicies fills the cluster without a scheduler, with the pods of each list once for each
// seed. It compares changes of the plugin, before BenchmarkAllocatedGPUs measures them among the
// other plugins of a scheduler.
func BenchmarkPolicies(b *testing.B) {
	nodes, every := sample(b, trace.GPUNodes(b), 1)
	var all fills
	for _, w := range trace.Workloads(b) {
		b.Run(w.Name, func(b *testing.B) {
			pods := w.Pods(b)
			for _, p := range policies {
				b.Run(p.name, func(b *testing.B) {
					for b.Loop() {
						for _, seed := range seeds(b) {
							d := newDraw(pods, nodes, seed)
							x := newFilling(b, d, p)
							run := gputable.Draw{Release: gputable.NoScheduler, List: w.Name, Side: p.name, Seed: seed}
							all = append(all, fill{run, d.allocated(x.fill(d.pods, p.choose(x, seed)))})
						}
					}
					all.report(b, w.Name, p.name)
				})
			}
		})
	}
	all.log(b, askedFor...)
	all.checkAbove(b, samples.Claim(page, "GPUPacking allocates more than best fit in every list"), 0, "random", "best-fit")
	all.checkAbove(b, samples.Claim(page, "nowhere more than 0.5 percentage points less than FGD"), -0.5, "fgd")
	if *update && every == 1 {
		all.record(b)
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

// descend is the policy of the paper, which chooses the device too. highest chooses among the nodes
// with the highest score: in the authors' simulator the first one by name, in a kube-scheduler one
// by chance.
func (x *filling) descend(highest score) score {
	workload := fgd.Typical(x.list)
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
func random(seed int64) score {
	source := rand.New(rand.NewPCG(uint64(seed), 1))
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

// bestFit is the policy of that name of the authors, which chooses the device too: it prefers
// nodes, and devices, with little left after the pod. The score is a whole number, and the first
// one by name of equal nodes gets the pod.
func (x *filling) bestFit(pod *corev1.Pod, nodes []int) []float64 {
	scores, want := make([]float64, len(nodes)), requestOf(pod)
	for j, i := range nodes {
		left := x.left[i].minus(want)
		scores[j] = math.Floor(100 * (1 - (float64(left.cpu)/128000*0.5 + float64(left.gpu)/8000*0.5)))
	}
	return scores
}

// anyDevices returns a choice of the devices by chance, for the authors' policy Random.
func (x *filling) anyDevices(seed int64) func(pod *corev1.Pod, node int) []int {
	source := rand.New(rand.NewPCG(uint64(seed), 2))
	return func(pod *corev1.Pod, node int) (devices []int) {
		each, count := demandOf(pod).Part()
		for _, i := range source.Perm(len(x.free[node])) {
			if x.free[node][i] >= each && int64(len(devices)) < count {
				devices = append(devices, i)
			}
		}
		return devices
	}
}

// fullest returns the devices with the least room that a pod fits.
func (x *filling) fullest(pod *corev1.Pod, node int) (devices []int) {
	each, count := demandOf(pod).Part()
	for ; count > 0; count-- {
		least := -1
		for i, left := range x.free[node] {
			if left >= each && !slices.Contains(devices, i) && (least < 0 || left < x.free[node][least]) {
				least = i
			}
		}
		devices = append(devices, least)
	}
	return devices
}
