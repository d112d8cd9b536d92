//go:build linux

// Package gpus repeats with a real kube-scheduler the comparison of Weng et al., "Beware of
// Fragmentation" (USENIX ATC 2023): nodes with GPUs are filled with pods from one of the authors'
// lists until they ask for more GPUs than there are, and the allocated GPUs are compared with the
// requested ones. Pods and nodes are in the order of the authors' own runs.
package gpus

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/openb"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/gputable"
	"github.com/pmk-sched/pmk-sched/test/internal/samples"
	"github.com/pmk-sched/pmk-sched/test/internal/trace"
)

const page = "scheduler/plugins/gpupacking/README.md"

var update = flag.Bool("update", false, "record the results on all nodes in testdata/allocated.csv; draw the picture of the "+
	"documentation (BenchmarkPolicies)")

// index is the annotation with the devices of a pod.
const index = "alibabacloud.com/gpu-index"

// arguments of the plugin, for the resource of the trace.
const arguments = `{resource: ` + openb.GPUMilli + `, devices: {units: 1000}, annotations: {index: ` + index + `}, modelLabel: ` +
	openb.GPUModel + `}`

// side is a configuration of a profile.
type side struct {
	name, plugins, config string
}

// allSides differ in how nodes are scored. In all of them the plugin filters nodes by the free
// share of each device, and chooses the device, because kube-scheduler knows sums only.
var allSides = []side{
	{gputable.Default, "multiPoint: {enabled: [{name: GPUPacking}]}, score: {disabled: [{name: GPUPacking}]}", ""},
	{gputable.MostAllocated,
		"multiPoint: {enabled: [{name: GPUPacking}, {name: NodeResourcesFit, weight: 100}]}, score: {disabled: [{name: " +
			"GPUPacking}]}",
		", {name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated, resources: [{name: " + openb.GPUMilli +
			", weight: 1}, {name: cpu, weight: 1}]}}}"},
	{gputable.GPUPacking, "multiPoint: {enabled: [{name: GPUPacking, weight: 100}]}", ""},
}

// most is how many GPUs the pods of a draw request for a kube-scheduler, in percent of the
// cluster's: as many as the value at 100 % depends on. The others would only take time.
const most = 101

// BenchmarkAllocatedGPUs fills the cluster with each side, with the pods of each list once for each
// seed. All sides get the same pods, and take turns. All lists are measured with one seed before
// any of them is with the next one.
func BenchmarkAllocatedGPUs(b *testing.B) {
	nodes, every := sample(b, trace.GPUNodes(b), 4)
	for _, release := range releases() {
		b.Run(release, func(b *testing.B) {
			var all fills
			c := startCluster(b, release)
			for round, seed := range seeds(b) {
				for _, w := range trace.Workloads(b) {
					b.Run(fmt.Sprintf("%d/%s", seed, w.Name), func(b *testing.B) {
						for b.Loop() {
							d := newDraw(w.Pods(b), nodes, seed).upTo(most)
							for _, s := range samples.Turn(sides(b), round) {
								run := gputable.Draw{Release: release, List: w.Name, Side: s.name, Seed: seed}
								f := fill{run, d.allocated(c.fill(b, s, d))}
								all = append(all, f)
								if *update && every == 1 {
									fills{f}.record(b)
								}
							}
						}
					})
				}
			}
			all.log(b, 100)
		})
	}
}

// sides returns the sides in the environment variable SIDES, or all of them if it is not set.
func sides(b *testing.B) []side {
	b.Helper()
	names := strings.Fields(os.Getenv("SIDES"))
	if len(names) == 0 {
		return allSides
	}
	some := slices.DeleteFunc(slices.Clone(allSides), func(s side) bool { return !slices.Contains(names, s.name) })
	if len(some) != len(names) {
		b.Fatalf("invalid SIDES %q", names)
	}
	return some
}

// releases returns the releases in the environment variable RELEASE, or v1.24.3 if it is not set.
func releases() []string {
	if all := strings.Fields(os.Getenv("RELEASE")); len(all) > 0 {
		return all
	}
	return []string{apiserver.Release}
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
