//go:build linux

// Package cost measures what each bundled plugin costs a scheduling cycle on 5,000 nodes, side by side with the nearest plugin of
// sigs.k8s.io/scheduler-plugins, compiled unchanged into the same release.
//
// The cost of a plugin is the time of its extension points for each pod, in a profile with this plugin, less that of a profile of the same process
// without it. It is taken from scheduler_framework_extension_point_duration_seconds, which measures every cycle, with all nodes of Filter and Score at
// once. scheduler_plugin_execution_duration_seconds measures single calls in one of ten cycles, and drops most of them if a cycle has thousands.
package cost

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	pmksched "github.com/pmk-sched/pmk-sched"
	"github.com/pmk-sched/pmk-sched/internal/build"
	"github.com/pmk-sched/pmk-sched/internal/build/plugins"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
)

const (
	release = "v1.33.13"
	// module is scheduler-plugins for that minor, and scheme the package that decodes the arguments of its plugins.
	module, version = "sigs.k8s.io/scheduler-plugins", "v0.33.5"
	scheme          = module + "/apis/config/scheme"
	nodes           = 5000
	// rounds is how often each side is measured. The sides take turns, so that what else the machine does affects both; the median counts.
	rounds = 5
)

// pair is a bundled plugin and the nearest one of scheduler-plugins.
type pair struct {
	builtin, args string
	// native is the package of the other plugin, empty if there is none with a similar task.
	native, nativeArgs string
	// gpus has pods request a share of a GPU.
	gpus bool
}

// pairs returns the plugins. Both of a pair read the same objects where they can: PodGroups, ElasticQuotas and NodeResourceTopologies, and the
// CPU load of the nodes.
func pairs(load string) []pair {
	return []pair{
		{builtin: "coscheduling", native: "pkg/coscheduling"},
		{builtin: "elasticquota", native: "pkg/capacityscheduling"},
		{builtin: "numaaware", native: "pkg/noderesourcetopology"},
		{
			builtin: "loadaware", args: `{"prometheus": {"url": "` + load + `"}, "metrics": [{"name": "cpu"}]}`,
			native: "pkg/trimaran/targetloadpacking", nativeArgs: `{"watcherAddress": "` + load + `"}`,
		},
		{
			builtin: "networkaware", args: `{"group": "network.example.com", "version": "v1alpha1", "resource": "networkmetrics", "field": "status.latencyMilliseconds"}`,
			native: "pkg/networkaware/networkoverhead", nativeArgs: `{"namespaces": ["` + appNamespace + `"], "networkTopologyName": "` + topologyName + `"}`,
		},
		{builtin: "costaware", native: "allocatable", nativeArgs: `{"resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]}`},
		{builtin: "gpupacking", args: `{"resource": "` + gpuResource + `", "devices": {"units": 1000}, "annotations": {"index": "example.com/gpu-index"}}`, gpus: true},
		{builtin: "blockall", args: `{"namespaces": ["nobody"]}`},
		{builtin: "timestamp"},
	}
}

// side is a plugin to measure.
type side struct {
	name, args, binary string
	points             []string
	gpus               bool
}

// bench is what all pairs share.
type bench struct {
	*controlplane.Plane
	// load answers as a Prometheus and as a load watcher.
	load string
	// ours and theirs are the sides by package.
	ours, theirs map[string]side
}

func BenchmarkCost(b *testing.B) {
	x := &bench{Plane: controlplane.Start(b, release), load: serveLoad(b)}
	x.createCluster(b)
	x.build(b)
	for _, p := range pairs(x.load) {
		b.Run(p.builtin, func(b *testing.B) {
			ours := x.ours[p.builtin]
			ours.args, ours.gpus = p.args, p.gpus
			sides := []side{ours}
			if p.native != "" {
				theirs := x.theirs[p.native]
				theirs.args = p.nativeArgs
				sides = append(sides, theirs)
			}
			for b.Loop() {
				x.compare(b, sides)
			}
		})
	}
}

// compare measures the sides in turn. The ratio is the median of those of each round, and its noise the median of their distances from it: a plugin
// costs more than the other one if the ratio exceeds 1 by more than the noise.
func (x *bench) compare(b *testing.B, sides []side) {
	b.Helper()
	costs := make([][]float64, len(sides))
	var ratios []float64
	for round := range rounds {
		for i := range sides {
			at := (i + round) % len(sides) // each side is first in every other round
			c := x.measure(b, sides[at])
			b.Logf("%s: %s", sides[at].name, c)
			costs[at] = append(costs[at], c.total())
		}
		if len(sides) == 2 {
			ratios = append(ratios, costs[0][round]/costs[1][round])
		}
	}
	for i, s := range sides {
		b.ReportMetric(1e6*median(costs[i]), s.name+"-µs/pod")
	}
	if len(ratios) == 0 {
		return
	}
	ratio := median(ratios)
	var distances []float64
	for _, r := range ratios {
		distances = append(distances, max(r-ratio, ratio-r))
	}
	noise := median(distances)
	b.ReportMetric(ratio, "ratio")
	b.ReportMetric(noise, "ratio-noise")
	if ratio-noise > 1 {
		b.Errorf("%s costs %.2f × %s, and the noise is %.2f", sides[0].name, ratio, sides[1].name, noise)
	}
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// build builds two schedulers, since plugins of both sides have the same names.
func (x *bench) build(b *testing.B) {
	b.Helper()
	var ours, theirs []plugins.Plugin
	for _, p := range pairs(x.load) {
		ours = append(ours, plugins.Plugin{Builtin: p.builtin})
		switch {
		case strings.HasPrefix(p.native, "pkg/"):
			theirs = append(theirs, plugins.Plugin{Module: module, Version: version, Package: module + "/" + p.native})
		case p.native != "":
			theirs = append(theirs, plugins.Plugin{Dir: "testdata/" + p.native})
		}
	}
	x.ours = x.sides(b, ours, build.Options{Release: x.Release, Plugins: ours, Sources: pmksched.Sources})
	x.theirs = x.sides(b, theirs, build.Options{Release: x.Release, Plugins: theirs, Imports: []string{scheme}, Sources: pmksched.Sources})
}

func (x *bench) sides(b *testing.B, given []plugins.Plugin, o build.Options) map[string]side {
	b.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		b.Fatal(err)
	}
	infos, err := build.ReadPlugins(b.Context(), build.PluginOptions{
		Release: x.Release, Plugins: given, Sources: o.Sources, CacheDir: filepath.Join(cache, "pmk-sched"), Env: os.Environ(),
	})
	if err != nil {
		b.Fatal(err)
	}
	binary, err := controlplane.Build(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	all := map[string]side{}
	for i, info := range infos {
		key := given[i].Builtin
		switch {
		case given[i].Dir != "":
			key = filepath.Base(given[i].Dir)
		case given[i].Module != "":
			key = strings.TrimPrefix(given[i].Package, module+"/")
		}
		all[key] = side{name: info.Name, binary: binary, points: info.Points}
	}
	return all
}

// configuration has two profiles: one with the plugin, and one without. Both have one more plugin at Filter and at Score, because the scheduler leaves
// out an extension point without plugins, and no others. The queue is sorted by PrioritySort, also for a plugin that could sort it.
func (s side) configuration(kubeconfig string) string {
	const common = `
    queueSort: {enabled: [{name: PrioritySort}], disabled: [{name: "*"}]}
    filter: {enabled: [{name: NodeUnschedulable}]}
    score: {enabled: [{name: ImageLocality, weight: 1}]}
    bind: {enabled: [{name: DefaultBinder}]}`
	args := ""
	if s.args != "" {
		args = fmt.Sprintf("\n  pluginConfig: [{name: %s, args: %s}]", s.name, s.args)
	}
	return fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: %q, qps: 5000, burst: 5000}
leaderElection: {leaderElect: true, leaseDuration: 10m, renewDeadline: 5m, retryPeriod: 1s, resourceName: %s, resourceNamespace: %s}
percentageOfNodesToScore: 100
profiles:
- schedulerName: %s
  plugins:
    multiPoint: {disabled: [{name: "*"}]}%s
- schedulerName: %s
  plugins:
    multiPoint: {enabled: [{name: %s}], disabled: [{name: "*"}]}%s%s
`, kubeconfig, lease, leaseNamespace, without, common, with, s.name, common, args)
}

// start starts the scheduler of a side, and returns where its metrics are.
func (x *bench) start(ctx context.Context, b *testing.B, s side) (*controlplane.Process, *metrics) {
	b.Helper()
	config := filepath.Join(b.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte(s.configuration(x.Kubeconfig)), 0o600); err != nil {
		b.Fatal(err)
	}
	address := controlplane.FreeAddress(b)
	process := controlplane.NewProcess(b, s.binary, "--config="+config, "--bind-address=127.0.0.1", "--secure-port="+address[strings.LastIndex(address, ":")+1:],
		"--authentication-skip-lookup", "--authorization-always-allow-paths=/metrics,/debug/pprof/*")
	process.Start()
	m := newMetrics(address)
	m.awaitIdle(ctx, b)
	return process, m
}
