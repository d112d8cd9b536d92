//go:build linux

// Package gpus repeats with a real kube-scheduler the comparison of Weng et al., "Beware of
// Fragmentation" (USENIX ATC 2023): a cluster is filled with pods drawn from the openb trace until
// they ask for more GPUs than it has, and the allocated GPUs are compared with the requested ones.
package gpus

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pmksched "github.com/pmk-sched/pmk-sched"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/openb"
	"github.com/pmk-sched/pmk-sched/test/internal/chart"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/samples"
	"github.com/pmk-sched/pmk-sched/test/internal/trace"
)

const (
	release = "v1.36.3"
	// overcommitment is the number of requested GPUs as a multiple of the cluster's GPUs.
	overcommitment = 1.3
)

var update = flag.Bool("update", false, "write the picture of the documentation")

// arguments of the plugin, for the resource of the trace.
const arguments = `{resource: ` + openb.GPUMilli +
	`, devices: {units: 1000}, annotations: {index: alibabacloud.com/gpu-index}}`

// side is a configuration of a profile.
type side struct {
	name string
	// title is the name in the picture.
	title, plugins, config string
}

// sides differ in how nodes are scored. In all of them the plugin filters nodes by the free share
// of each device, and chooses the device, because kube-scheduler knows sums only.
var sides = []side{
	{"default", "default scores", "multiPoint: {enabled: [{name: GPUPacking}]}, score: {disabled: [{name: GPUPacking}]}",
		""},
	{"mostallocated", "MostAllocated",
		"multiPoint: {enabled: [{name: GPUPacking}, {name: NodeResourcesFit, weight: 100}]}, score: {disabled: [{name: " +
			"GPUPacking}]}",
		", {name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated, resources: [{name: " + openb.GPUMilli +
			", weight: 1}, {name: cpu, weight: 1}]}}}"},
	{"gpupacking", "GPUPacking", "multiPoint: {enabled: [{name: GPUPacking, weight: 100}]}", ""},
}

// BenchmarkAllocatedGPUs fills the cluster with each side once for each of five draws. All sides
// get the same pods, and take turns.
func BenchmarkAllocatedGPUs(b *testing.B) {
	const draws = 5
	nodes, pods := trace.Read(b)
	x := controlplane.Start(b, release)
	binary, err := controlplane.Build(b.Context(),
		build.Options{Release: x.Release, Plugins: []plugins.Plugin{{Builtin: "gpupacking"}}, Sources: pmksched.Sources})
	if err != nil {
		b.Fatal(err)
	}
	createNodes(b, x, nodes)
	lines := map[string][]chart.Point{}
	var at samples.Table
	for b.Loop() {
		for round, seed := range seeds(b, draws) {
			drawn, capacity := draw(pods, nodes, seed)
			for _, s := range samples.Turn(sides, round) {
				process := x.NewScheduler(b, controlplane.Scheduler{
					Name: s.name, Plugins: []string{"GPUPacking"}, Source: s.source(), Binary: binary,
				})
				line := allocation(drawn, fill(b, x, s.name, process, drawn), capacity)
				addAllocated(&at, s.name, line)
				b.Logf("%s, seed %d:%s", s.title, seed, report(line))
				if round == 0 {
					lines[s.name] = line
				}
			}
		}
	}
	var drawing []chart.Line
	for _, s := range sides {
		reportAllocated(b, &at, s.name)
		drawing = append(drawing, chart.Line{Name: s.title, Points: lines[s.name]})
	}
	if *update {
		chart.Write(b, "gpus.svg", "GPUs allocated against GPUs asked for",
			chart.Axis{Title: "GPUs asked for, % of the cluster's", From: 80, To: 130, Every: 10},
			chart.Axis{Title: "GPUs allocated, % of the cluster's", From: 75, To: 100, Every: 5}, drawing...)
	}
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

// seeds returns the numbers in the environment variable SEEDS, with which pods are drawn, or the
// numbers from 1 on if it is not set.
func seeds(b *testing.B, draws int) (all []uint64) {
	b.Helper()
	given := os.Getenv("SEEDS")
	if given == "" {
		for seed := range draws {
			all = append(all, uint64(seed)+1)
		}
		return all
	}
	for _, text := range strings.Fields(given) {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			b.Fatalf("invalid SEEDS: %v", err)
		}
		all = append(all, seed)
	}
	return all
}

// draw draws pods of the trace until they ask for enough GPUs, and returns them with the GPUs that
// the nodes have, in thousandths.
func draw(pods []*corev1.Pod, nodes []*corev1.Node, seed uint64) (drawn []*corev1.Pod, capacity int64) {
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

// askedFor are the requested GPUs, in percent of the cluster's GPUs, at which the allocated GPUs
// are reported.
var askedFor = []float64{95, 100, 105, 130}

// addAllocated adds the allocated GPUs of one draw.
func addAllocated(at *samples.Table, side string, line []chart.Point) {
	for _, percent := range askedFor {
		i := slices.IndexFunc(line, func(p chart.Point) bool { return p.X >= percent })
		if i < 0 {
			i = len(line) - 1
		}
		at.Add(fmt.Sprint(percent), side, line[i].Y)
	}
}

// reportAllocated reports the mean over all draws, the least and the most.
func reportAllocated(b *testing.B, at *samples.Table, side string) {
	b.Helper()
	for _, percent := range askedFor {
		at.Of(fmt.Sprint(percent), side).ReportMean(b, side, fmt.Sprintf("%%-of-%v", percent))
	}
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

// allocation returns the allocated GPUs against the requested GPUs, both in percent of the
// cluster's GPUs, from 80 percent requested on.
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
