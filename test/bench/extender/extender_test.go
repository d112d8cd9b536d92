//go:build linux

// Package extender measures the cost of an extender: pods bound per second by one scheduler with
// the same policy as a service over HTTPS, as a sidecar on 127.0.0.1, compiled in as a plugin, and,
// for comparison, no policy at all and an extender of the usual kind that reads whole nodes. Nodes
// are objects, so that nothing else takes the machine's time.
package extender

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	pmksched "github.com/pmk-sched/pmk-sched"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/test/internal/samples"
)

const (
	release = "v1.24.3"
	nodes   = 500
	pods    = 1000
	rounds  = 3
	group   = "bench"
)

// loads answers every query with the load of all nodes.
func loads(b *testing.B, names []string) *httptest.Server {
	type sample struct {
		Metric map[string]string `json:"metric"`
		Value  [2]any            `json:"value"`
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		samples, now := make([]sample, len(names)), float64(time.Now().Unix())
		for i, name := range names {
			samples[i] = sample{map[string]string{"instance": name}, [2]any{now, fmt.Sprint(float64(i%90) / 100)}}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"status": "success",
			"data": map[string]any{"resultType": "vector", "result": samples}})
	}))
	b.Cleanup(server.Close)
	return server
}

// wholeNodes is an extender of the usual kind: it decodes all nodes, and answers with all of them
// whole.
func wholeNodes(b *testing.B) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var args extenderv1.ExtenderArgs
		if err := json.NewDecoder(r.Body).Decode(&args); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if strings.HasSuffix(r.URL.Path, "/filter") {
			_ = json.NewEncoder(w).Encode(extenderv1.ExtenderFilterResult{Nodes: args.Nodes})
			return
		}
		scores := extenderv1.HostPriorityList{}
		for i := range args.Nodes.Items {
			scores = append(scores, extenderv1.HostPriority{Host: args.Nodes.Items[i].Name, Score: int64(i % 10)})
		}
		_ = json.NewEncoder(w).Encode(scores)
	}))
	b.Cleanup(server.Close)
	return server.URL
}

// bench is the state that all sides share.
type bench struct {
	*controlplane.Plane
	prometheus string
	// memory is the peak memory of a sidecar, in megabytes; processor is the CPU time of all sidecars.
	memory    float64
	processor time.Duration
}

// The sides are measured in turn, several times, and the median counts: other load on the machine
// affects all of them.
func BenchmarkExtender(b *testing.B) {
	x := &bench{Plane: controlplane.Start(b, release)}
	ctx := b.Context()
	names := controlplane.Numbered("node", nodes)
	x.Nodes(ctx, b, group, names...)
	x.prometheus = loads(b, names).URL
	sides := []struct {
		name string
		// start starts the extender of a side, and returns the scheduler to measure and a function
		// that ends the extender.
		start func(context.Context, *testing.B) (controlplane.Scheduler, func())
	}{{"none", x.none}, {"plugin", x.plugin}, {"sidecar", x.sidecar}, {"service", x.service}, {"whole-nodes", x.whole}}
	rates := map[string]samples.Set{}
	for b.Loop() {
		for round := range rounds {
			for _, side := range samples.Turn(sides, round) {
				s, end := side.start(ctx, b)
				s.Name = side.name
				rates[side.name] = append(rates[side.name], x.measure(b, s))
				end()
			}
		}
	}
	for _, side := range sides {
		b.Logf("%s: %.0f pods/s", side.name, rates[side.name])
		rates[side.name].ReportMedian(b, side.name, "pods/s")
		if side.name != "none" {
			b.ReportMetric(100*rates[side.name].Median()/rates["none"].Median(), side.name+"-%-of-none")
		}
	}
	b.ReportMetric(x.memory, "sidecar-MB-at-most")
	b.ReportMetric(float64(x.processor.Microseconds())/float64(pods*len(rates["sidecar"])), "sidecar-µs/pod")
}

func (x *bench) none(context.Context, *testing.B) (controlplane.Scheduler, func()) {
	return controlplane.Scheduler{}, func() {}
}

// arguments returns the arguments of loadaware, as a plugin and as a policy.
func (x *bench) arguments() string {
	return fmt.Sprintf(`{"prometheus": {"url": %q}, "metrics": [{"name": "cpu", "maxPercent": 95}, {"name": "memory"}]}`,
		x.prometheus)
}

// plugin returns a scheduler with the policy compiled in.
func (x *bench) plugin(ctx context.Context, b *testing.B) (controlplane.Scheduler, func()) {
	plugin, err := plugins.Parse("builtin:loadaware")
	if err != nil {
		b.Fatal(err)
	}
	binary, err := controlplane.Build(ctx,
		build.Options{Release: x.Release, Plugins: []plugins.Plugin{plugin}, Sources: pmksched.Sources})
	if err != nil {
		b.Fatal(err)
	}
	source := fmt.Sprintf(
		"apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\nprofiles:\n- plugins: "+
			"{multiPoint: {enabled: [{name: LoadAware}]}}\n"+
			"  pluginConfig: [{name: LoadAware, args: %s}]\n", x.arguments())
	return controlplane.Scheduler{Binary: binary, Source: []byte(source), Plugins: []string{"LoadAware"}}, func() {}
}

// extend starts the extender and returns a scheduler that asks it for names.
func (x *bench) extend(ctx context.Context, b *testing.B, scheme string,
	args ...string) (controlplane.Scheduler, *controlplane.Extender) {
	config := filepath.Join(b.TempDir(), "extender.yaml")
	text := fmt.Sprintf("apiVersion: pmk-sched.io/v1alpha1\nkind: Extender\npolicies: [{name: LoadAware, args: %s}]\n",
		x.arguments())
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	e := x.NewExtender(b, scheme, append(args, "--config", config)...)
	e.Start()
	yes, no := true, false
	return controlplane.Scheduler{Extenders: []profiles.Extender{{
		Name: "bench", URLPrefix: e.URL, FilterVerb: "filter", PrioritizeVerb: "prioritize", Weight: 1,
		HTTPTimeout: 10 * time.Second, Ignorable: &no, NodeCacheCapable: &yes,
	}}}, e
}

func (x *bench) sidecar(ctx context.Context, b *testing.B) (controlplane.Scheduler, func()) {
	s, e := x.extend(ctx, b, "http")
	e.Await(ctx, b, "")
	return s, func() {
		x.memory = max(x.memory, run.MemoryOf(b, e.PID(), "VmHWM"))
		x.processor += run.CPUOf(b, e.PID())
		e.Kill()
	}
}

func (x *bench) service(ctx context.Context, b *testing.B) (controlplane.Scheduler, func()) {
	set, _, err := certificates.Ensure(certificates.Set{},
		certificates.Request{Name: "bench", Addresses: []net.IP{net.IPv4(127, 0, 0, 1)}, Now: time.Now()})
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	for file, text := range map[string][]byte{cert: set.Server.Cert, key: set.Server.Key} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	s, e := x.extend(ctx, b, "https", "--tls-cert-file", cert, "--tls-private-key-file", key)
	e.Trust(b, set.CA.Cert)
	e.Await(ctx, b, "")
	s.Extenders[0].EnableHTTPS, s.Extenders[0].TLS = true, &profiles.ExtenderTLS{CAData: set.CA.Cert}
	return s, e.Kill
}

func (x *bench) whole(_ context.Context, b *testing.B) (controlplane.Scheduler, func()) {
	no := false
	return controlplane.Scheduler{Extenders: []profiles.Extender{{
		Name: "bench", URLPrefix: wholeNodes(b), FilterVerb: "filter", PrioritizeVerb: "prioritize", Weight: 1,
		HTTPTimeout:      30 * time.Second,
		NodeCacheCapable: &no, Ignorable: &no,
	}}}, func() {}
}

// measure makes all pods pending before the scheduler starts, so that their creation is not
// measured, and counts from the first pod bound to the last.
func (x *bench) measure(b *testing.B, s controlplane.Scheduler) float64 {
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Minute)
	defer cancel()
	namespace := "bench-" + s.Name
	x.Namespace(ctx, b, namespace)
	defer x.Clear(b, namespace)
	var all []*corev1.Pod
	for _, name := range controlplane.Numbered("pod", pods) {
		all = append(all, controlplane.Pod(s.Name, group, name))
	}
	x.Create(ctx, b, namespace, all...)
	events := controlplane.WatchBound(ctx, b, x.Kube, namespace)
	process := x.NewScheduler(b, s)
	process.Start()
	defer process.Kill()
	rate, bound := controlplane.BindingRate(events, pods)
	if bound < pods {
		b.Fatalf("%s bound only %d of %d pods", s.Name, bound, pods)
	}
	return rate
}
