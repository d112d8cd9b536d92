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

	"github.com/pmk-sched/pmk-sched/internal/snapshot/openb"
	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/gpupacking"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
	"github.com/pmk-sched/pmk-sched/test/internal/chart"
	"github.com/pmk-sched/pmk-sched/test/internal/trace"
)

// score is how well a node suits a pod; only the order counts. The lists have the same length.
type score func(pod *corev1.Pod, nodes []int) []float64

// BenchmarkPolicies fills the cluster without a scheduler, in seconds: for changes of the plugin, before BenchmarkAllocatedGPUs shows what they
// achieve among the other plugins of a scheduler. In all policies the plugin filters by device and chooses the device.
func BenchmarkPolicies(b *testing.B) {
	nodes, pods := trace.Read(b)
	drawn, capacity := draw(pods, nodes)
	for _, name := range []string{"random", "least-allocated", "best-fit", "gpupacking"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				x := newFilling(b, nodes, drawn)
				choose := map[string]score{"random": x.random(), "least-allocated": x.leastAllocated, "best-fit": x.bestFit, "gpupacking": x.steepest}[name]
				line := allocation(drawn, x.fill(drawn, choose), capacity)
				asked := slices.IndexFunc(line, func(p chart.Point) bool { return p.X >= 100 })
				b.ReportMetric(line[asked].Y, "%-allocated-of-100")
				b.ReportMetric(line[len(line)-1].Y, "%-allocated-of-130")
			}
		})
	}
}

// filling is a cluster that is filled with pods.
type filling struct {
	b       *testing.B
	plugin  *gpupacking.GPUPacking
	cluster *plugintest.Cluster
	nodes   []*plugintest.Node
	// known is what the plugin answered for pods with a signature, for each node. It is right for as long as the node has the same pods.
	known map[any][]answer
}

type answer struct {
	pods  int
	fits  bool
	score int64
}

func newFilling(b *testing.B, nodes []*corev1.Node, drawn []*corev1.Pod) *filling {
	b.Helper()
	x := &filling{b: b, cluster: plugintest.NewCluster(0, &corev1.Node{}), known: map[any][]answer{}}
	for _, n := range nodes {
		node := plugintest.NewNode(n)
		x.nodes = append(x.nodes, node)
		x.cluster.Add(node)
	}
	args, err := json.Marshal(map[string]any{
		"resource": openb.GPUMilli, "devices": map[string]any{"units": 1000}, "annotations": map[string]any{"index": "alibabacloud.com/gpu-index"}, "workload": mostFrequent(drawn),
	})
	if err != nil {
		b.Fatal(err)
	}
	if x.plugin, err = gpupacking.New(b.Context(), scheduler.NewArguments(args), &plugintest.Handle{NodeList: x.cluster.Nodes()}); err != nil {
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

// feasible returns the nodes that have room for a pod.
func (x *filling) feasible(pod *corev1.Pod) []int {
	want := plugintest.NewNode(&corev1.Node{}, pod).Requested()
	var nodes []int
	for i, n := range x.nodes {
		has, used := n.Allocatable(), n.Requested()
		if used.MilliCPU+want.MilliCPU > has.MilliCPU || used.Memory+want.Memory > has.Memory || n.PodCount() >= 110 {
			continue
		}
		if x.ask(pod, i).fits {
			nodes = append(nodes, i)
		}
	}
	return nodes
}

// ask returns what the plugin answers for a pod and a node.
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

// random is a choice by chance.
func (x *filling) random() score {
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

// bestFit prefers nodes with little free CPU and GPU, in relation to the largest node, as the policy of that name in the paper.
func (x *filling) bestFit(_ *corev1.Pod, nodes []int) []float64 {
	scores := make([]float64, len(nodes))
	for j, i := range nodes {
		has, used := x.nodes[i].Allocatable(), x.nodes[i].Requested()
		scores[j] = -float64(has.MilliCPU-used.MilliCPU)/128000 - float64(has.Scalar[trace.GPU]-used.Scalar[trace.GPU])/8000
	}
	return scores
}
