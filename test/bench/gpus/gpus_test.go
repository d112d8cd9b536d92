//go:build linux

// Package gpus repeats with a real kube-scheduler the comparison of Weng et al., "Beware of
// Fragmentation" (USENIX ATC 2023): a cluster is filled with pods drawn from the openb trace until
// they ask for more GPUs than it has, and the allocated GPUs are compared with the requested ones.
package gpus

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pmksched "github.com/pmk-sched/pmk-sched"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/openb"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/samples"
	"github.com/pmk-sched/pmk-sched/test/internal/trace"
)

const (
	release = "v1.24.3"
	page    = "scheduler/plugins/gpupacking/README.md"
)

var update = flag.Bool("update", false, "draw the picture of the documentation (BenchmarkPolicies); add the results to "+
	"testdata/allocated.csv (BenchmarkAllocatedGPUs)")

// index is the annotation with the devices of a pod.
const index = "alibabacloud.com/gpu-index"

// arguments of the plugin, for the resource of the trace.
const arguments = `{resource: ` + openb.GPUMilli + `, devices: {units: 1000}, annotations: {index: ` + index + `}}`

// side is a configuration of a profile.
type side struct {
	name, plugins, config string
}

// sides differ in how nodes are scored. In all of them the plugin filters nodes by the free share
// of each device, and chooses the device, because kube-scheduler knows sums only.
var sides = []side{
	{"default", "multiPoint: {enabled: [{name: GPUPacking}]}, score: {disabled: [{name: GPUPacking}]}", ""},
	{"mostallocated",
		"multiPoint: {enabled: [{name: GPUPacking}, {name: NodeResourcesFit, weight: 100}]}, score: {disabled: [{name: " +
			"GPUPacking}]}",
		", {name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated, resources: [{name: " + openb.GPUMilli +
			", weight: 1}, {name: cpu, weight: 1}]}}}"},
	{"gpupacking", "multiPoint: {enabled: [{name: GPUPacking, weight: 100}]}", ""},
}

// BenchmarkAllocatedGPUs fills every fourth node of the cluster with each side, for each workload
// once for each of ten draws. All sides get the same pods, and take turns. On all nodes a draw has
// four times as many pods, and a scheduler scores four times as many nodes for each of them.
func BenchmarkAllocatedGPUs(b *testing.B) {
	nodes, pods := trace.Read(b)
	nodes = sample(b, nodes, 4)
	// Before 1.32 the watch cache lists pods in any order, and the scheduler would not try them in the
	// order in which they are drawn.
	x := controlplane.Start(b, release, "--watch-cache-sizes=pods#0")
	binary, err := controlplane.Build(b.Context(),
		build.Options{Release: x.Release, Plugins: []plugins.Plugin{{Builtin: "gpupacking"}}, Sources: pmksched.Sources})
	if err != nil {
		b.Fatal(err)
	}
	createNodes(b, x, nodes)
	all := results{nodes: len(nodes)}
	if *update {
		all.read(b)
	}
	for _, w := range trace.Workloads() {
		b.Run(w.Name, func(b *testing.B) {
			made := w.Make(nodes, pods)
			for b.Loop() {
				for round, seed := range seeds(b) {
					drawn, capacity := draw(made, nodes, seed)
					for _, s := range samples.Turn(sides, round) {
						all.put(b, result{w.Name, s.name, seed, s.allocate(b, x, binary, drawn, capacity)})
					}
				}
			}
			for _, s := range sides {
				all.tables().report(b, s.name, w.Name)
			}
		})
	}
	all.tables().log(b)
	all.tables().checkAbove(b, samples.Claim(page, "GPUPacking allocates the most in all workloads at 100 % asked for"), 0,
		allWorkloads(), []string{"default", "mostallocated"})
}

// source returns the configuration.
func (s side) source() []byte {
	return fmt.Appendf(nil, `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 100
clientConnection: {qps: 2000, burst: 2000}
profiles: [{schedulerName: %s, plugins: {%s}, pluginConfig: [{name: GPUPacking, args: %s}%s]}]
`, s.name, s.plugins, arguments, s.config)
}

// allocate fills the cluster with a side and returns the allocated GPUs as allocation does.
func (s side) allocate(b *testing.B, x *controlplane.Plane, binary string, drawn []*corev1.Pod,
	capacity int64) []float64 {
	b.Helper()
	process := x.NewScheduler(b, controlplane.Scheduler{
		Name: s.name, Plugins: []string{"GPUPacking"}, Source: s.source(), Binary: binary,
	})
	started := time.Now()
	allocated := allocation(drawn, fill(b, x, s.name, process, drawn), capacity)
	b.Logf("%s, %d pods in %s", s.name, len(drawn), time.Since(started).Round(time.Second))
	return allocated
}

func createNodes(b *testing.B, x *controlplane.Plane, nodes []*corev1.Node) {
	b.Helper()
	var all errgroup.Group
	all.SetLimit(20)
	for _, n := range nodes {
		all.Go(func() error {
			_, err := x.Kube.CoreV1().Nodes().Create(b.Context(), n, metav1.CreateOptions{})
			return err
		})
	}
	if err := all.Wait(); err != nil {
		b.Fatal(err)
	}
}

// fill creates the pods before the scheduler starts, and waits until it has tried all of them. It
// returns which ones are bound.
func fill(b *testing.B, x *controlplane.Plane, name string, process *controlplane.Process, drawn []*corev1.Pod) []bool {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 30*time.Minute)
	defer cancel()
	x.Namespace(ctx, b, name)
	defer x.Clear(b, name)
	var pods []*corev1.Pod
	for i, from := range drawn {
		// the scheduler lists them in this order
		pod := controlplane.Filling(controlplane.Pod(name, "", fmt.Sprintf("pod-%06d", i)))
		pod.Spec.NodeSelector = nil
		pod.Spec.Affinity, pod.Spec.Containers[0].Resources = from.Spec.Affinity, from.Spec.Containers[0].Resources
		pods = append(pods, pod)
	}
	x.Create(ctx, b, name, pods...)
	process.Start()
	defer process.Kill()
	for {
		unbound, err := x.Kube.CoreV1().Pods(name).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName="})
		if err != nil {
			b.Fatal(err)
		}
		placed, left := slices.Repeat([]bool{true}, len(drawn)), 0
		for i := range unbound.Items {
			pod := &unbound.Items[i]
			if len(pod.Status.Conditions) == 0 {
				left++
			}
			var index int
			if _, err := fmt.Sscanf(pod.Name, "pod-%d", &index); err != nil {
				b.Fatal(err)
			}
			placed[index] = false
		}
		if left == 0 {
			return placed
		}
		select {
		case <-ctx.Done():
			b.Fatalf("%s has not tried %d of %d pods:\n%s", name, left, len(drawn), process.Log())
		case <-time.After(2 * time.Second):
		}
	}
}
