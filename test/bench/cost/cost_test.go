//go:build linux

// Package cost measures the cost of bundled plugins in a scheduling cycle on 5,000 nodes, side by
// side with the plugin of sigs.k8s.io/scheduler-plugins that does the same, if there is one,
// compiled unchanged into the same release.
//
// Both plugins of a pair are profiles of one scheduler, and their pods come in turn. The cost of a
// plugin is the CPU time of its extension points for each pod, from CPU profiles of the scheduler,
// in which samples count whose stack leads from the framework to the plugin. Unlike the durations
// in the scheduler's metrics it does not depend on other load on the machine; and of
// scheduler_plugin_execution_duration_seconds, which measures single calls, the scheduler drops
// most values if a cycle has thousands.
package cost

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	pmksched "github.com/pmk-sched/pmk-sched"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/samples"
)

const (
	release = "v1.33.13"
	// module is scheduler-plugins for that minor, and scheme the package that decodes the arguments
	// of its plugins.
	module, version = "sigs.k8s.io/scheduler-plugins", "v0.33.5"
	scheme          = module + "/apis/config/scheme"
	nodes           = 5000
	// rounds is how often each pair is measured, unless ROUNDS is set.
	rounds = 5
	// The pods of each plugin in a round: the less a plugin takes, the more pods it needs for some
	// samples.
	few, some, many = 100, 200, 500
)

// pair is a bundled plugin and the one of scheduler-plugins that does the same.
type pair struct {
	builtin, args string
	// native is the package of the other plugin, or a directory of testdata with it. It is empty if
	// none does the same.
	native, nativeArgs string
	// pods is the number of pods of each plugin in a round.
	pods int
	// gpus has pods request a share of a GPU.
	gpus bool
}

// profiles returns the profiles of the scheduler of a pair.
func (p pair) profiles() []string {
	if p.native == "" {
		return []string{bundled}
	}
	return []string{bundled, native}
}

// pairs returns the plugins. Both of a pair read the same objects: PodGroups, ElasticQuotas and
// NodeResourceTopologies, and the CPU load of the nodes. Plugins that do not look at each node are
// not measured.
func pairs(load string) []pair {
	return []pair{
		{builtin: "coscheduling", native: "gangs", pods: many},
		{builtin: "elasticquota", native: "pkg/capacityscheduling", pods: many},
		{
			builtin: "loadaware", args: `{"prometheus": {"url": "` + load + `"}, "metrics": [{"name": "cpu"}]}`,
			native: "pkg/trimaran/targetloadpacking", nativeArgs: `{"watcherAddress": "` + load + `"}`, pods: some,
		},
		// Without the resync period the other plugin reads the topology of each node from the API
		// server for each pod.
		{
			builtin: "numaaware",
			native:  "pkg/noderesourcetopology", nativeArgs: `{"cacheResyncPeriodSeconds": 600}`, pods: few,
		},
		{
			builtin: "networkaware", args: `{"group": "network.example.com", "version": "v1alpha1", ` +
				`"resource": "networkmetrics", "field": "status.latencyMilliseconds"}`, pods: some,
		},
		{builtin: "costaware", pods: some},
		{
			builtin: "gpupacking", args: `{"resource": "` + gpuResource + `", "devices": {"units": 1000}, ` +
				`"annotations": {"index": "example.com/gpu-index"}}`, pods: some, gpus: true,
		},
	}
}

// plugin is one to measure.
type plugin struct {
	name, args string
	// binary is the scheduler that it is compiled into, with the other one of the pair.
	binary string
}

// bench is the state that all pairs share.
type bench struct {
	*controlplane.Plane
	// load answers as a Prometheus and as a load watcher.
	load string
	// compiled are the plugins by package.
	compiled map[string]plugin
}

func BenchmarkCost(b *testing.B) {
	x := &bench{Plane: controlplane.Start(b, release), load: serveLoad(b), compiled: map[string]plugin{}}
	all := pairs(x.load)
	// With the scheme the scheduler would decode the arguments of the bundled Coscheduling as
	// arguments of the other Coscheduling.
	x.build(b, all[:1])
	x.build(b, all[1:], scheme)
	x.createCluster(b)
	for _, p := range all {
		b.Run(p.builtin, func(b *testing.B) {
			for b.Loop() {
				x.compare(b, p)
			}
		})
	}
}

// plugins returns the plugins of a pair by profile.
func (x *bench) plugins(p pair) map[string]plugin {
	found := map[string]plugin{bundled: x.compiled[p.builtin].with(p.args)}
	if p.native != "" {
		found[native] = x.compiled[p.native].with(p.nativeArgs)
	}
	return found
}

func (p plugin) with(args string) plugin {
	p.args = args
	return p
}

// compare measures several rounds. The ratio compares the means, and its noise follows from the
// number of profile samples: a plugin costs more than the other one if the ratio exceeds 1 by more
// than the noise.
func (x *bench) compare(b *testing.B, p pair) {
	b.Helper()
	count := samples.Rounds(b, rounds)
	taken := map[string]samples.Set{}
	for range count {
		measured := x.measure(b, p)
		for _, profile := range p.profiles() {
			taken[profile] = append(taken[profile], float64(measured[profile].Nanoseconds())/1000)
		}
	}
	for profile, plugin := range x.plugins(p) {
		b.Logf("%s: %.0f µs/pod", plugin.name, taken[profile])
		taken[profile].ReportMean(b, profile, "µs/pod")
	}
	if p.native == "" {
		return
	}
	if taken[native].Mean() == 0 {
		b.Fatalf("no sample of %s: it takes too little time to be compared", p.native)
	}
	ratio := taken[bundled].Mean() / taken[native].Mean()
	// Samples are independent, so that n of them vary by √n.
	noise := ratio * math.Sqrt(1/profiled(taken[bundled], p.pods)+1/profiled(taken[native], p.pods))
	b.ReportMetric(ratio, "ratio")
	b.ReportMetric(noise, "ratio-noise")
	samples.Claim("docs/performance.md", "fails if a plugin costs more than the other one by more than the noise").
		AtMost(b, fmt.Sprintf("%s/%s less the noise of %.2f", p.builtin, p.native, noise), ratio-noise, 1)
}

// profiled returns the number of samples of the CPU profiles that the rounds consist of: there are
// a hundred in a second.
func profiled(rounds samples.Set, pods int) float64 {
	return max(1, 100*rounds.Mean()*float64(len(rounds)*pods)/1e6)
}

// build builds a scheduler with the plugins of pairs.
func (x *bench) build(b *testing.B, selected []pair, imports ...string) {
	b.Helper()
	var given []plugins.Plugin
	var keys []string
	for _, p := range selected {
		given, keys = append(given, plugins.Plugin{Builtin: p.builtin}), append(keys, p.builtin)
		switch {
		case strings.HasPrefix(p.native, "pkg/"):
			given, keys = append(given, plugins.Plugin{Module: module, Version: version, Package: module + "/" + p.native}),
				append(keys, p.native)
		case p.native != "":
			given, keys = append(given, plugins.Plugin{Dir: "testdata/" + p.native}), append(keys, p.native)
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		b.Fatal(err)
	}
	infos, err := build.ReadPlugins(b.Context(), build.Options{
		Release: x.Release, Plugins: given, Sources: pmksched.Sources,
		Environment: build.Environment{CacheDir: filepath.Join(cache, "pmk-sched"), Env: os.Environ()},
	})
	if err != nil {
		b.Fatal(err)
	}
	binary, err := controlplane.Build(b.Context(),
		build.Options{Release: x.Release, Plugins: given, Imports: imports, Sources: pmksched.Sources})
	if err != nil {
		b.Fatal(err)
	}
	for i, info := range infos {
		x.compiled[keys[i]] = plugin{name: info.Name, binary: binary}
	}
}

// configuration returns the profiles. All have one more plugin at Filter and at Score, because the
// scheduler leaves out an extension point without plugins, and no others. The queue is sorted by
// PrioritySort, also for a plugin that could sort it.
func (x *bench) configuration(p pair) string {
	const common = `
    queueSort: {enabled: [{name: PrioritySort}], disabled: [{name: "*"}]}
    filter: {enabled: [{name: NodeUnschedulable}]}
    score: {enabled: [{name: ImageLocality, weight: 1}]}
    bind: {enabled: [{name: DefaultBinder}]}
`
	text := fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: %q, qps: 5000, burst: 5000}
leaderElection: {leaderElect: true, leaseDuration: 10m, renewDeadline: 5m, retryPeriod: 1s, resourceName: %s, resourceNamespace: %s}
percentageOfNodesToScore: 100
profiles:
`, x.Kubeconfig, lease, leaseNamespace)
	for profile, plugin := range x.plugins(p) {
		text += fmt.Sprintf(`- schedulerName: %s
  plugins:
    multiPoint: {enabled: [{name: %s}], disabled: [{name: "*"}]}%s`, profile, plugin.name, common)
		if plugin.args != "" {
			text += fmt.Sprintf("  pluginConfig: [{name: %s, args: %s}]\n", plugin.name, plugin.args)
		}
	}
	return text
}

// start starts the scheduler, and returns it when it is idle because its caches are filled.
func (x *bench) start(ctx context.Context, b *testing.B, p pair) (*controlplane.Process, *scheduler) {
	b.Helper()
	config := filepath.Join(b.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte(x.configuration(p)), 0o600); err != nil {
		b.Fatal(err)
	}
	address := controlplane.FreeAddress(b)
	process := controlplane.NewProcess(b, x.compiled[p.builtin].binary, "--config="+config,
		"--bind-address=127.0.0.1", "--secure-port="+address[strings.LastIndex(address, ":")+1:],
		"--authentication-skip-lookup", "--authorization-always-allow-paths=/metrics,/debug/pprof/*")
	process.Start()
	s := newScheduler(address)
	s.awaitIdle(ctx, b)
	return process, s
}
