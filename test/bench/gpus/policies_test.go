//go:build linux

package gpus

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/openb"
	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/gpupacking"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
	"github.com/pmk-sched/pmk-sched/test/internal/samples"
	"github.com/pmk-sched/pmk-sched/test/internal/trace"
)

// score returns how well each node suits a pod; only the order counts. The lists have the same
// length.
type score func(pod *corev1.Pod, nodes []int) []float64

// policies score the nodes that have room for a pod. In all of them the plugin filters by device
// and chooses the device.
var policies = []struct {
	name string
	// percentage is the part of the nodes that are scored, as percentageOfNodesToScore.
	percentage int
	choose     func(x *filling, seed uint64) score
}{
	{"random", 100, func(_ *filling, seed uint64) score { return random(seed) }},
	{"least-allocated", 100, func(x *filling, _ uint64) score { return x.leastAllocated }},
	{"best-fit", 100, func(x *filling, _ uint64) score { return x.bestFit }},
	{"gpupacking", 100, func(x *filling, _ uint64) score { return x.steepest }},
	{"gpupacking-scoring-40-percent", 40, func(x *filling, _ uint64) score { return x.steepest }},
	{"gpupacking-scoring-10-percent", 10, func(x *filling, _ uint64) score { return x.steepest }},
	{"gpupacking-ties-by-chance", 100, func(x *filling, seed uint64) score { return x.steepestByChance(random(seed)) }},
}

// BenchmarkPolicies fills the cluster without a scheduler, once for each of ten draws. It compares
// changes of the plugin, before BenchmarkAllocatedGPUs measures them among the other plugins of a
// scheduler.
func BenchmarkPolicies(b *testing.B) {
	const draws = 10
	nodes, pods := trace.Read(b)
	for _, p := range policies {
		b.Run(p.name, func(b *testing.B) {
			var at samples.Table
			for b.Loop() {
				for _, seed := range seeds(b, draws) {
					drawn, capacity := draw(pods, nodes, seed)
					x := newFilling(b, nodes, drawn, p.percentage)
					addAllocated(&at, p.name, allocation(drawn, x.fill(drawn, p.choose(x, seed)), capacity))
				}
			}
			reportAllocated(b, &at, p.name)
		})
	}
}

// filling is a cluster that is filled with pods.
type filling struct {
	b       *testing.B
	plugin  *gpupacking.GPUPacking
	cluster *plugintest.Cluster
	nodes   []*plugintest.Node
	// scored is the number of nodes with room that are scored for a pod, and next the node at which
	// the search for them begins.
	scored, next int
	// known are the plugin's answers for pods with a signature, by node. An answer is valid while
	// the number of pods on the node is the same.
	known map[any][]answer
}

type answer struct {
	pods  int
	fits  bool
	score int64
}

func newFilling(b *testing.B, nodes []*corev1.Node, drawn []*corev1.Pod, percentage int) *filling {
	b.Helper()
	x := &filling{
		b: b, scored: len(nodes) * percentage / 100,
		cluster: plugintest.NewCluster(0, &corev1.Node{}), known: map[any][]answer{},
	}
	for _, n := range nodes {
		node := plugintest.NewNode(n)
		x.nodes = append(x.nodes, node)
		x.cluster.Add(node)
	}
	args, err := json.Marshal(map[string]any{
		"resource": openb.GPUMilli, "devices": map[string]any{"units": 1000},
		"annotations": map[string]any{"index": "alibabacloud.com/gpu-index"}, "workload": mostFrequent(drawn),
	})
	if err != nil {
		b.Fatal(err)
	}
	if x.plugin, err = gpupacking.New(b.Context(), scheduler.NewArguments(args),
		&plugintest.Handle{NodeList: x.cluster.Nodes()}); err != nil {
		b.Fatal(err)
	}
	return x
}

// mostFrequent returns the workload of the pods, as the plugin measures it.
func mostFrequent(pods []*corev1.Pod) []gpupacking.Class {
	counts := map[[2]int64]*gpupacking.Class{}
	var all []*gpupacking.Class
	for _, pod := range pods {
		cpu, gpu := pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU], trace.Request(pod)
		key := [2]int64{cpu.MilliValue(), gpu}
		if gpu > 0 && counts[key] == nil {
			counts[key] = &gpupacking.Class{CPU: cpu, Amount: gpu}
			all = append(all, counts[key])
		}
		if gpu > 0 {
			counts[key].Weight++
		}
	}
	slices.SortStableFunc(all, func(a, b *gpupacking.Class) int { return int(b.Weight - a.Weight) })
	var classes []gpupacking.Class
	for _, c := range all[:min(32, len(all))] {
		classes = append(classes, *c)
	}
	return classes
}

// fill places the pods one after the other, and returns which ones have a node.
func (x *filling) fill(drawn []*corev1.Pod, choose score) []bool {
	x.b.Helper()
	placed := make([]bool, len(drawn))
	for i, from := range drawn {
		pod := from.DeepCopy()
		pod.Name, pod.UID = fmt.Sprintf("pod-%06d", i), types.UID(fmt.Sprintf("pod-%06d", i))
		nodes := x.feasible(pod)
		if len(nodes) == 0 {
			continue
		}
		scores, best := choose(pod, nodes), 0
		for j, s := range scores {
			if s > scores[best] {
				best = j
			}
		}
		name := x.nodes[nodes[best]].Node().Name
		if status := x.plugin.Reserve(x.b.Context(), nil, pod, name); !status.IsSuccess() {
			x.b.Fatal(status)
		}
		x.cluster.Place(pod, name)
		placed[i] = true
	}
	return placed
}

// feasible returns nodes that have room for a pod: like kube-scheduler as many as are scored, from
// the node on at which the last search ended.
func (x *filling) feasible(pod *corev1.Pod) []int {
	want := plugintest.NewNode(&corev1.Node{}, pod).Requested()
	var nodes []int
	visited := 0
	for ; visited < len(x.nodes) && len(nodes) < x.scored; visited++ {
		i := (x.next + visited) % len(x.nodes)
		has, used := x.nodes[i].Allocatable(), x.nodes[i].Requested()
		if used.MilliCPU+want.MilliCPU > has.MilliCPU || used.Memory+want.Memory > has.Memory ||
			x.nodes[i].PodCount() >= 110 {
			continue
		}
		if x.ask(pod, i).fits {
			nodes = append(nodes, i)
		}
	}
	x.next = (x.next + visited) % len(x.nodes)
	return nodes
}

// ask returns the plugin's answer for a pod and a node.
func (x *filling) ask(pod *corev1.Pod, node int) answer {
	x.b.Helper()
	ctx := x.b.Context()
	signature, status := x.plugin.Sign(ctx, pod)
	if !status.IsSuccess() {
		x.b.Fatal(status)
	}
	answers := x.known[signature]
	if answers == nil {
		answers = make([]answer, len(x.nodes))
		for i := range answers {
			answers[i].pods = -1
		}
		x.known[signature] = answers
	}
	n := x.nodes[node]
	if a := answers[node]; a.pods == n.PodCount() {
		return a
	}
	a := answer{pods: n.PodCount(), fits: x.plugin.Filter(ctx, plugintest.NewState(), pod, n).IsSuccess()}
	if a.fits {
		if a.score, status = x.plugin.Score(ctx, plugintest.NewState(), pod, n); !status.IsSuccess() {
			x.b.Fatal(status)
		}
	}
	answers[node] = a
	return a
}

// steepest is the plugin.
func (x *filling) steepest(pod *corev1.Pod, nodes []int) []float64 {
	var list []scheduler.NodeScore
	for _, i := range nodes {
		list = append(list, scheduler.NodeScore{Name: x.nodes[i].Node().Name, Score: x.ask(pod, i).score})
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

// steepestByChance prefers the nodes with the steepest descent, as the plugin, and chooses among
// them by chance.
func (x *filling) steepestByChance(chance score) score {
	return func(pod *corev1.Pod, nodes []int) []float64 {
		scores := chance(pod, nodes) // below 1
		for j, i := range nodes {
			scores[j] += float64(x.ask(pod, i).score)
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
		has, used := x.nodes[i].Allocatable(), x.nodes[i].Requested()
		scores[j] = -float64(used.MilliCPU)/float64(has.MilliCPU) - float64(used.Memory)/float64(has.Memory)
	}
	return scores
}

// bestFit prefers nodes with little free CPU and GPU, in relation to the largest node, as the
// policy of that name in the paper.
func (x *filling) bestFit(_ *corev1.Pod, nodes []int) []float64 {
	scores := make([]float64, len(nodes))
	for j, i := range nodes {
		has, used := x.nodes[i].Allocatable(), x.nodes[i].Requested()
		scores[j] = -float64(has.MilliCPU-used.MilliCPU)/128000 - float64(has.Scalar[trace.GPU]-used.Scalar[trace.GPU])/8000
	}
	return scores
}
