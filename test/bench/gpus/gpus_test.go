//go:build linux

// Package gpus repeats with a real kube-scheduler the comparison of Weng et al., "Beware of Fragmentation" (USENIX ATC 2023): a cluster is
// filled with pods drawn from the openb trace until they ask for more GPUs than it has, and the GPUs that were allocated are compared
// with those asked for.
package gpus

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	pmksched "github.com/pmk-sched/pmk-sched"
	"github.com/pmk-sched/pmk-sched/internal/build"
	"github.com/pmk-sched/pmk-sched/internal/build/plugins"
	"github.com/pmk-sched/pmk-sched/internal/snapshot/openb"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
)

const (
	release = "v1.36.3"
	// traceVariable names the directory with the two lists of the trace.
	traceVariable = "PMK_SCHED_OPENB"
	// seed draws the same pods for all sides.
	seed = 42
	// overcommitment is how many GPUs the pods ask for in relation to those of the cluster.
	overcommitment = 1.3
	gpus           = corev1.ResourceName(openb.GPUMilli)
)

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
	dir := os.Getenv(traceVariable)
	if dir == "" {
		b.Skip(traceVariable + " is not the directory of the openb trace")
	}
	nodes := readTrace[corev1.Node](b, filepath.Join(dir, "openb_node_list_all_node.csv"), openb.Nodes)
	drawn, capacity := draw(readTrace[corev1.Pod](b, filepath.Join(dir, "openb_pod_list_default.csv"), openb.Pods), nodes)
	x := controlplane.Start(b, release)
	binary, err := controlplane.Build(b.Context(), build.Options{Release: x.Release, Plugins: []plugins.Plugin{{Builtin: "gpupacking"}}, Sources: pmksched.Sources})
	if err != nil {
		b.Fatal(err)
	}
	createNodes(b, x, nodes)
	for b.Loop() {
		for _, s := range sides {
			source := fmt.Sprintf("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\npercentageOfNodesToScore: 100\nclientConnection: {qps: 2000, burst: 2000}\n"+
				"profiles: [{schedulerName: %s, plugins: {%s}, pluginConfig: [{name: GPUPacking, args: %s}%s]}]\n", s.name, s.plugins, arguments, s.config)
			placed := fill(b, x, s.name, x.NewScheduler(b, controlplane.Scheduler{Name: s.name, Plugins: []string{"GPUPacking"}, Source: []byte(source), Binary: binary}), drawn)
			b.Logf("%s:%s", s.name, report(drawn, placed, capacity))
			b.ReportMetric(100*float64(allocated(drawn, placed, len(drawn)))/float64(capacity), s.name+"-%-allocated")
		}
	}
}

// readTrace reads a list of the trace as objects.
func readTrace[T any](b *testing.B, name string, read func(r io.Reader, do func(map[string]any) error) error) []*T {
	b.Helper()
	file, err := os.Open(name)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	var all []*T
	if err := read(file, func(object map[string]any) error {
		typed := new(T)
		all = append(all, typed)
		return runtime.DefaultUnstructuredConverter.FromUnstructured(object, typed)
	}); err != nil {
		b.Fatal(err)
	}
	return all
}

// draw draws pods of the trace until they ask for enough GPUs, and returns them with the GPUs that the nodes have, in thousandths.
func draw(trace []*corev1.Pod, nodes []*corev1.Node) (drawn []*corev1.Pod, capacity int64) {
	for _, n := range nodes {
		capacity += n.Status.Allocatable.Name(gpus, "").Value()
	}
	random := rand.New(rand.NewPCG(seed, 0))
	for asked := int64(0); float64(asked) < overcommitment*float64(capacity); {
		pod := trace[random.IntN(len(trace))]
		asked += request(pod)
		drawn = append(drawn, pod)
	}
	return drawn, capacity
}

func request(pod *corev1.Pod) int64 {
	amount := pod.Spec.Containers[0].Resources.Requests[gpus]
	return amount.Value()
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

// allocated returns the GPUs of those of the first pods that are bound.
func allocated(drawn []*corev1.Pod, placed []bool, first int) int64 {
	sum := int64(0)
	for i, pod := range drawn[:first] {
		if placed[i] {
			sum += request(pod)
		}
	}
	return sum
}

// report returns lines with the GPUs asked for and allocated, in percent of those of the cluster.
func report(drawn []*corev1.Pod, placed []bool, capacity int64) string {
	var lines strings.Builder
	asked, next := int64(0), 80.0
	for i, pod := range drawn {
		asked += request(pod)
		if share := 100 * float64(asked) / float64(capacity); share >= next {
			fmt.Fprintf(&lines, "\n  asked for %5.1f %%, allocated %5.1f %%", share, 100*float64(allocated(drawn, placed, i+1))/float64(capacity))
			next += 5
		}
	}
	return lines.String()
}
