//go:build linux

// Package batching measures how much kube-scheduler gains by batching identical pods: a scheduler
// with the preset throughput and the bundled plugins that sign pods, and the same scheduler with a
// plugin that does not, on 5,000 nodes of each release that batches.
package batching

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	pmksched "github.com/pmk-sched/pmk-sched"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/internal/cluster/metrics"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/samples"
)

const (
	nodes = 5000
	pods  = 2000
	group = "batching"
	// hintedShare is the share of pods that must be placed by reused results, in percent.
	hintedShare = 90
	// rounds is how often each side is measured, unless ROUNDS is set. The sides take turns.
	rounds = 5
)

// bench is the state that the sides of one release share.
type bench struct {
	*controlplane.Plane
	binary  string
	enabled []profiles.Plugin
}

// side is a scheduler to measure.
type side struct {
	name string
	// unsigned enables the plugin that does not sign pods.
	unsigned bool
	// filling pods leave no room for another one on their node. 1.35 and 1.36 batch no others.
	filling bool
}

func BenchmarkBatching(b *testing.B) {
	for _, release := range []string{"v1.35.4", "v1.36.3", "v1.37.1"} {
		b.Run(release, func(b *testing.B) {
			x := start(b, release)
			sides := []side{{name: "batched", filling: true}, {name: "unsigned", unsigned: true, filling: true}}
			if x.Release.Minor >= 37 {
				sides = append(sides, side{name: "batched-small"}, side{name: "unsigned-small", unsigned: true})
			}
			rates, hints := map[string]samples.Set{}, map[string]samples.Set{}
			for b.Loop() {
				for round := range samples.Rounds(b, rounds) {
					for _, s := range samples.Turn(sides, round) {
						rate, hinted := x.measure(b, s)
						rates[s.name], hints[s.name] = append(rates[s.name], rate), append(hints[s.name], hinted)
						if s.unsigned {
							samples.Claim("docs/performance.md", "With the plugin that does not sign no pod is placed from reused results").
								AtMost(b, s.name+": % of the pods from reused results", hinted, 0)
						} else {
							samples.Claim("docs/performance.md", "fails if less than 90 % are placed from reused results").
								AtLeast(b, s.name+": % of the pods from reused results", hinted, hintedShare)
						}
					}
				}
			}
			for _, s := range sides {
				b.Logf("%s: %.0f pods/s, %.1f %% by reused results", s.name, rates[s.name], hints[s.name])
				rates[s.name].ReportMedian(b, s.name, "pods/s")
				b.ReportMetric(hints[s.name].Mean(), s.name+"-%-hinted")
			}
		})
	}
}

// start starts the API server of a release with nodes, and builds its scheduler with the plugins.
func start(b *testing.B, release string) *bench {
	x := &bench{Plane: controlplane.Start(b, release)}
	ctx := b.Context()
	x.Nodes(ctx, b, group, controlplane.Numbered("node", nodes)...)
	cache, err := os.UserCacheDir()
	if err != nil {
		b.Fatal(err)
	}
	given := []plugins.Plugin{{Builtin: "blockall"}, {Builtin: "coscheduling"}, {Builtin: "costaware"},
		{Builtin: "elasticquota"}, {Builtin: "gpupacking"}, {Builtin: "loadaware"}, {Builtin: "networkaware"},
		{Builtin: "numaaware"}, {Dir: "testdata/unsigned"}}
	infos, err := build.ReadPlugins(ctx, build.Options{
		Release: x.Release, Plugins: given, Sources: pmksched.Sources,
		Environment: build.Environment{CacheDir: filepath.Join(cache, "pmk-sched"), Env: os.Environ()},
	})
	if err != nil {
		b.Fatal(err)
	}
	// LoadAware without data and NetworkAware without its resource still filter and score.
	arguments := map[string]string{
		"BlockAll":     `{"namespaces": ["none"]}`,
		"LoadAware":    `{"prometheus": {"url": "http://127.0.0.1:1"}, "metrics": [{"name": "cpu", "maxPercent": 95}]}`,
		"NetworkAware": `{"group": "network.example.com", "version": "v1alpha1", "resource": "networkmetrics", "field": "status.latency"}`,
	}
	for _, info := range infos {
		x.enabled = append(x.enabled,
			profiles.Plugin{Name: info.Name, Points: info.Points, Signs: info.Signs, Args: []byte(arguments[info.Name])})
	}
	if x.binary, err = controlplane.Build(ctx,
		build.Options{Release: x.Release, Plugins: given, Sources: pmksched.Sources}); err != nil {
		b.Fatal(err)
	}
	return x
}

// scheduler configures the scheduler of a side, and returns the address of its metrics.
func (x *bench) scheduler(b *testing.B, s side) (process *controlplane.Process, address string) {
	b.Helper()
	request := profiles.Request{Release: x.Release, SchedulerName: s.name, Kubeconfig: x.Kubeconfig, Preset: "throughput"}
	for _, p := range x.enabled {
		if p.Signs || s.unsigned {
			request.Enable = append(request.Enable, p)
		}
	}
	rendered, err := profiles.Render(request)
	if err != nil {
		b.Fatal(err)
	}
	if unbatched, err := profiles.FindUnbatched(rendered.YAML, x.Release, request.Enable, nil); err != nil ||
		len(unbatched) > 0 != s.unsigned {
		b.Fatalf("%s: %v, %v", s.name, unbatched, err)
	}
	config := filepath.Join(b.TempDir(), "config.yaml")
	if err := os.WriteFile(config, rendered.YAML, 0o600); err != nil {
		b.Fatal(err)
	}
	address = controlplane.FreeAddress(b)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		b.Fatal(err)
	}
	args := append([]string{"--config=" + config, "--bind-address=127.0.0.1", "--secure-port=" + port,
		"--authentication-skip-lookup", "--authorization-always-allow-paths=/metrics"}, rendered.Args...)
	return controlplane.NewProcess(b, x.binary, args...), address
}

// measure makes all pods pending before the scheduler starts, so that creating them is not
// measured. It returns the pods bound per second, from the first to the last, and the share of pods
// that reused results placed, in percent.
func (x *bench) measure(b *testing.B, s side) (rate, hinted float64) {
	ctx, cancel := context.WithTimeout(b.Context(), 20*time.Minute)
	defer cancel()
	namespace := "bench-" + s.name
	x.Namespace(ctx, b, namespace)
	defer x.Clear(b, namespace)
	var all []*corev1.Pod
	for _, name := range controlplane.Numbered("pod", pods) {
		pod := controlplane.Pod(s.name, group, name)
		if s.filling {
			pod = controlplane.Filling(pod)
		}
		all = append(all, pod)
	}
	x.Create(ctx, b, namespace, all...)
	events := controlplane.WatchBound(ctx, b, x.Kube, namespace)
	process, address := x.scheduler(b, s)
	process.Start()
	defer process.Kill()
	rate, bound := controlplane.BindingRate(events, pods)
	if bound < pods {
		b.Fatalf("%s bound only %d of %d pods", s.name, bound, pods)
	}
	return rate, 100 * x.hints(ctx, b, address) / pods
}

// hints returns the number of pods that reused results placed.
func (x *bench) hints(ctx context.Context, b *testing.B, address string) float64 {
	b.Helper()
	client := &http.Client{Timeout: time.Minute,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // the scheduler's own certificate
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/metrics", http.NoBody)
	if err != nil {
		b.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || !strings.Contains(string(text), "\nscheduler_") {
		b.Fatalf("metrics of %s: %s, %v", address, response.Status, err)
	}
	return metrics.Parse(string(text)).SumBy("scheduler_batch_attempts_total", "result")["hint_used"]
}
