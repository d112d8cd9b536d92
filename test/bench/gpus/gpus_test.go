//go:build linux

// Package gpus repeats with a real kube-scheduler the comparison of Weng et al., "Beware of Fragmentation" (USENIX ATC 2023): a cluster is
// filled with pods drawn from the openb trace until they ask for more GPUs than it has, and the GPUs that were allocated are compared
// with those asked for.
package gpus

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pmksched "github.com/pmk-sched/pmk-sched"
	"github.com/pmk-sched/pmk-sched/internal/build"
	"github.com/pmk-sched/pmk-sched/internal/build/plugins"
	"github.com/pmk-sched/pmk-sched/internal/snapshot/openb"
	"github.com/pmk-sched/pmk-sched/test/internal/chart"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/trace"
)

const (
	release = "v1.36.3"
	// seed draws the same pods for all sides.
	seed = 42
	// overcommitment is how many GPUs the pods ask for in relation to those of the cluster.
	overcommitment = 1.3
)

var update = flag.Bool("update", false, "write the picture of the documentation")

// arguments of the plugin, for the resource of the trace.
const arguments = `{resource: ` + openb.GPUMilli + `, devices: {units: 1000}, annotations: {index: alibabacloud.com/gpu-index}}`

// sides are configurations of a profile. In all of them the plugin filters nodes by what is free on each device, and chooses the device,
// because kube-scheduler knows sums only. They differ in how nodes are scored.
var sides = []struct{ name, plugins, config string }{
	{"default", "multiPoint: {enabled: [{name: GPUPacking}]}, score: {disabled: [{name: GPUPacking}]}", ""},
	{"binpack", "multiPoint: {enabled: [{name: GPUPacking}, {name: NodeResourcesFit, weight: 100}]}, score: {disabled: [{name: GPUPacking}]}",
		", {name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated, resources: [{name: " + openb.GPUMilli + ", weight: 1}, {name: cpu, weight: 1}]}}}"},
	{"gpupacking", "multiPoint: {enabled: [{name: GPUPacking, weight: 100}]}", ""},
}

func BenchmarkAllocatedGPUs(b *testing.B) {
	nodes, pods := trace.Read(b)
	drawn, capacity := draw(pods, nodes)
	x := controlplane.Start(b, release)
	binary, err := controlplane.Build(b.Context(), build.Options{Release: x.Release, Plugins: []plugins.Plugin{{Builtin: "gpupacking"}}, Sources: pmksched.Sources})
	if err != nil {
		b.Fatal(err)
	}
	createNodes(b, x, nodes)
	for b.Loop() {
		var lines []chart.Line
		for _, s := range sides {
			source := fmt.Sprintf("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\npercentageOfNodesToScore: 100\nclientConnection: {qps: 2000, burst: 2000}\n"+
				"profiles: [{schedulerName: %s, plugins: {%s}, pluginConfig: [{name: GPUPacking, args: %s}%s]}]\n", s.name, s.plugins, arguments, s.config)
			placed := fill(b, x, s.name, x.NewScheduler(b, controlplane.Scheduler{Name: s.name, Plugins: []string{"GPUPacking"}, Source: []byte(source), Binary: binary}), drawn)
			line := allocation(drawn, placed, capacity)
			lines = append(lines, chart.Line{Name: s.name, Points: line})
			b.Logf("%s:%s", s.name, report(line))
			b.ReportMetric(line[len(line)-1].Y, s.name+"-%-allocated")
		}
		if *update {
			chart.Write(b, "gpus.svg", "GPUs allocated against GPUs asked for", chart.Axis{Title: "GPUs asked for, % of the cluster's", From: 80, To: 130, Every: 10},
				chart.Axis{Title: "GPUs allocated, % of the cluster's", From: 75, To: 100, Every: 5}, lines...)
		}
	}
}

// draw draws pods of the trace until they ask for enough GPUs, and returns them with the GPUs that the nodes have, in thousandths.
func draw(pods []*corev1.Pod, nodes []*corev1.Node) (drawn []*corev1.Pod, capacity int64) {
	for _, n := range nodes {
		capacity += n.Status.Allocatable.Name(trace.GPU, "").Value()
	}
	random := rand.New(rand.NewPCG(seed, 0))
	for asked := int64(0); float64(asked) < overcommitment*float64(capacity); {
		pod := pods[random.IntN(len(pods))]
		asked += trace.Request(pod)
		drawn = append(drawn, pod)
	}
	return drawn, capacity
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

// fill creates the pods before the scheduler starts, and waits until it has tried all of them. It returns which ones are bound.
func fill(b *testing.B, x *controlplane.Plane, name string, process *controlplane.Process, drawn []*corev1.Pod) []bool {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 30*time.Minute)
	defer cancel()
	x.Namespace(ctx, b, name)
	defer x.Clear(b, name)
	var pods []*corev1.Pod
	for i, from := range drawn {
		pod := controlplane.Filling(controlplane.Pod(name, "", fmt.Sprintf("pod-%06d", i))) // the scheduler lists them in this order
		pod.Spec.NodeSelector = nil
		pod.Spec.Affinity, pod.Spec.Containers[0].Resources = from.Spec.Affinity, from.Spec.Containers[0].Resources
		pods = append(pods, pod)
	}
	x.Create(ctx, b, name, pods...)
	process.Start()
	defer process.Kill()
	placed := make([]bool, len(drawn))
	for {
		list, err := x.Kube.CoreV1().Pods(name).List(ctx, metav1.ListOptions{})
		if err != nil {
			b.Fatal(err)
		}
		tried := 0
		for i := range list.Items {
			pod := &list.Items[i]
			if len(pod.Status.Conditions) == 0 && pod.Spec.NodeName == "" {
				continue
			}
			tried++
			var index int
			if _, err := fmt.Sscanf(pod.Name, "pod-%d", &index); err != nil {
				b.Fatal(err)
			}
			placed[index] = pod.Spec.NodeName != ""
		}
		if tried == len(drawn) {
			return placed
		}
		select {
		case <-ctx.Done():
			b.Fatalf("%s has tried %d of %d pods:\n%s", name, tried, len(drawn), process.Log())
		case <-time.After(2 * time.Second):
		}
	}
}

// allocation returns the GPUs that were allocated against those asked for, in percent of those of the cluster, from 80 percent asked for on.
func allocation(drawn []*corev1.Pod, placed []bool, capacity int64) []chart.Point {
	var points []chart.Point
	asked, allocated, next := int64(0), int64(0), 80.0
	for i, pod := range drawn {
		asked += trace.Request(pod)
		if placed[i] {
			allocated += trace.Request(pod)
		}
		if share := 100 * float64(asked) / float64(capacity); share >= next || i == len(drawn)-1 {
			points = append(points, chart.Point{X: share, Y: 100 * float64(allocated) / float64(capacity)})
			next++
		}
	}
	return points
}

// report returns every fifth point as a line of text.
func report(points []chart.Point) string {
	var lines strings.Builder
	for i, p := range points {
		if i%5 == 0 || i == len(points)-1 {
			fmt.Fprintf(&lines, "\n  asked for %5.1f %%, allocated %5.1f %%", p.X, p.Y)
		}
	}
	return lines.String()
}
