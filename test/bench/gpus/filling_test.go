//go:build linux

package gpus

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/openb"
	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/gpupacking"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
	"github.com/pmk-sched/pmk-sched/test/internal/fgd"
	"github.com/pmk-sched/pmk-sched/test/internal/trace"
)

// filling is a cluster that is filled with pods.
type filling struct {
	b       *testing.B
	plugin  *gpupacking.GPUPacking
	cluster *plugintest.Cluster
	nodes   []*plugintest.Node
	// whole is the room of each node when it is empty, and left its free room.
	whole, left []amounts
	// list is the list from which the pods are drawn.
	list []fgd.Demand
	// scored is the number of nodes with room that are scored for a pod, and next the node at which
	// the search for them begins.
	scored, next int
	// value returns the score of a policy for the requests of a pod and a node with room for it.
	value func(pod *corev1.Pod, node int) int64
	// devices returns the devices for a pod. Without it the plugin chooses them.
	devices func(pod *corev1.Pod, node int) []int
	// free are the free amounts of the devices of each node, if devices is set.
	free [][]int64
	// rooms caches the results of the plugin's filter for each request of GPUs, and values the results
	// of value for each signature.
	rooms, values *answers
}

// amounts are thousandths of cores, bytes of memory, thousandths of GPUs and a number of pods.
type amounts struct{ cpu, memory, gpu, pods int64 }

func amountsOf(list corev1.ResourceList, pods int64) amounts {
	return amounts{list.Cpu().MilliValue(), list.Memory().Value(), list.Name(trace.GPU, "").Value(), pods}
}

func (a amounts) fit(room amounts) bool {
	return a.cpu <= room.cpu && a.memory <= room.memory && a.gpu <= room.gpu && a.pods <= room.pods
}

func (a amounts) minus(o amounts) amounts {
	return amounts{a.cpu - o.cpu, a.memory - o.memory, a.gpu - o.gpu, a.pods - o.pods}
}

// answers caches a result for each key of pods and each node. An answer is valid while the number
// of pods that the node has room for is the same.
type answers struct {
	all map[any][]answer
	// current are the answers for the pod that is being placed.
	current []answer
}

type answer struct{ pods, value int64 }

func (a *answers) recall(key any, nodes int) {
	if a.all[key] == nil {
		a.all[key] = slices.Repeat([]answer{{pods: -1}}, nodes)
	}
	a.current = a.all[key]
}

func (a *answers) of(node int, pods int64, compute func() int64) int64 {
	if a.current[node].pods != pods {
		a.current[node] = answer{pods: pods, value: compute()}
	}
	return a.current[node].value
}

func newFilling(b *testing.B, d draw, p policy) *filling {
	b.Helper()
	nodes := d.nodes
	x := &filling{
		b: b, list: d.list, scored: len(nodes) * p.percentage / 100,
		cluster: plugintest.NewCluster(0, &corev1.Node{}),
		rooms:   &answers{all: map[any][]answer{}}, values: &answers{all: map[any][]answer{}},
	}
	for _, n := range nodes {
		node := plugintest.NewNode(n)
		x.nodes = append(x.nodes, node)
		x.cluster.Add(node)
		room := amountsOf(n.Status.Allocatable, n.Status.Allocatable.Pods().Value())
		x.whole, x.left = append(x.whole, room), append(x.left, room)
		x.free = append(x.free, slices.Repeat([]int64{trace.Whole}, int(room.gpu/trace.Whole)))
	}
	arguments := map[string]any{
		"resource": openb.GPUMilli, "devices": map[string]any{"units": trace.Whole},
		"annotations": map[string]any{"index": index}, "modelLabel": openb.GPUModel, "workload": mostFrequent(d.pods),
	}
	if p.name == withoutModels {
		classes := mostFrequent(d.pods)
		for i := range classes {
			classes[i].Models = nil
		}
		arguments["modelLabel"], arguments["workload"] = "", classes
	}
	args, err := json.Marshal(arguments)
	if err != nil {
		b.Fatal(err)
	}
	if x.plugin, err = gpupacking.New(b.Context(), scheduler.NewArguments(args),
		&plugintest.Handle{NodeList: x.cluster.Nodes()}); err != nil {
		b.Fatal(err)
	}
	x.value = func(pod *corev1.Pod, node int) int64 {
		score, status := x.plugin.Score(b.Context(), plugintest.NewState(), pod, x.nodes[node])
		if !status.IsSuccess() {
			b.Fatal(status)
		}
		return score
	}
	return x
}

// mostFrequent returns the workload of the pods, as the plugin measures it: the most frequent
// requests, with the models that their pods require.
func mostFrequent(pods []*corev1.Pod) (classes []gpupacking.Class) {
	type request struct{ cpu, gpu int64 }
	counts, byModels := map[request]int{}, map[request]map[string]*gpupacking.Class{}
	var order []request
	for _, pod := range pods {
		d := demandOf(pod)
		if d.GPU == 0 {
			continue
		}
		r := request{d.CPU, d.GPU}
		if counts[r]++; byModels[r] == nil {
			byModels[r], order = map[string]*gpupacking.Class{}, append(order, r)
		}
		if byModels[r][d.Models] == nil {
			cpu := pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU]
			byModels[r][d.Models] = &gpupacking.Class{CPU: cpu, Amount: d.GPU, Models: trace.Models(pod)}
		}
		byModels[r][d.Models].Weight++
	}
	slices.SortStableFunc(order, func(a, b request) int { return counts[b] - counts[a] })
	for _, r := range order[:min(32, len(order))] {
		for _, models := range slices.Sorted(maps.Keys(byModels[r])) {
			classes = append(classes, *byModels[r][models])
		}
	}
	return classes
}

func requestOf(pod *corev1.Pod) amounts {
	return amountsOf(pod.Spec.Containers[0].Resources.Requests, 1)
}

func demandOf(pod *corev1.Pod) fgd.Demand {
	return fgd.Demand{CPU: pod.Spec.Containers[0].Resources.Requests.Cpu().MilliValue(), GPU: trace.Request(pod),
		Models: strings.Join(trace.Models(pod), "|")}
}

// room returns the free room of a node.
func (x *filling) room(node int) fgd.Node {
	return fgd.Node{CPU: x.left[node].cpu, GPUs: x.free[node], Model: x.nodes[node].Node().Labels[openb.GPUModel]}
}

// fill places the pods one after the other, and returns which ones have a node.
func (x *filling) fill(drawn []*corev1.Pod, choose score) []bool {
	x.b.Helper()
	placed := make([]bool, len(drawn))
	for i, from := range drawn {
		pod := from.DeepCopy()
		pod.Name, pod.UID = fmt.Sprintf("pod-%06d", i), types.UID(fmt.Sprintf("pod-%06d", i))
		x.recall(pod)
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
		x.reserve(pod, nodes[best])
		x.cluster.Place(pod, x.nodes[nodes[best]].Node().Name)
		x.left[nodes[best]] = x.left[nodes[best]].minus(requestOf(pod))
		placed[i] = true
	}
	return placed
}

// reserve chooses the devices of a pod.
func (x *filling) reserve(pod *corev1.Pod, node int) {
	x.b.Helper()
	if x.devices == nil {
		if status := x.plugin.Reserve(x.b.Context(), nil, pod, x.nodes[node].Node().Name); !status.IsSuccess() {
			x.b.Fatal(status)
		}
		return
	}
	var indices []string
	for _, device := range x.devices(pod, node) {
		indices = append(indices, fmt.Sprint(device))
		x.free[node][device] -= min(trace.Request(pod), trace.Whole)
	}
	pod.Annotations = map[string]string{index: strings.Join(indices, ",")}
}

// feasible returns nodes that have room for a pod: like kube-scheduler as many as are scored, from
// the node on at which the last search ended.
func (x *filling) feasible(pod *corev1.Pod) []int {
	want, models := requestOf(pod), trace.Models(pod)
	var nodes []int
	visited := 0
	for ; visited < len(x.nodes) && len(nodes) < x.scored; visited++ {
		i := (x.next + visited) % len(x.nodes)
		if want.fit(x.left[i]) && x.fits(pod, i) &&
			(len(models) == 0 || slices.Contains(models, x.nodes[i].Node().Labels[openb.GPUModel])) {
			nodes = append(nodes, i)
		}
	}
	x.next = (x.next + visited) % len(x.nodes)
	return nodes
}

// recall selects the answers for a pod.
func (x *filling) recall(pod *corev1.Pod) {
	x.b.Helper()
	signature, status := x.plugin.Sign(x.b.Context(), pod)
	if !status.IsSuccess() {
		x.b.Fatal(status)
	}
	x.rooms.recall(trace.Request(pod), len(x.nodes))
	x.values.recall(signature, len(x.nodes))
}

// fits reports whether the plugin's filter lets the pod that is being placed on a node.
func (x *filling) fits(pod *corev1.Pod, node int) bool {
	return x.rooms.of(node, x.left[node].pods, func() int64 {
		if x.plugin.Filter(x.b.Context(), plugintest.NewState(), pod, x.nodes[node]).IsSuccess() {
			return 1
		}
		return 0
	}) == 1
}

// valueOf returns the value for the pod that is being placed and a node that it fits.
func (x *filling) valueOf(pod *corev1.Pod, node int) int64 {
	return x.values.of(node, x.left[node].pods, func() int64 { return x.value(pod, node) })
}
