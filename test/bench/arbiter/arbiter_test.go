//go:build linux

// Package arbiter measures what the arbiter costs: the time of a binding, and the pods that a
// scheduler binds in a second. The sides differ in the namespace of the pods only: the webhook
// leaves kube-system alone.
package arbiter

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/test/internal/samples"
	"github.com/pmk-sched/pmk-sched/test/internal/webhooks"
	"github.com/pmk-sched/pmk-sched/versions"
)

const (
	nodes   = 100
	pods    = 1000
	clients = 4
	group   = "bench"
	// few is the number of pods for a scheduler with the limits that kubeadm, PMK and most others
	// leave at their defaults: 50 requests a second, 100 at once.
	few      = 400
	defaults = "clientConnection: {qps: 50, burst: 100}\n"
)

// side is a namespace, and the samples of its rounds.
type side struct {
	name, namespace string
	// median and tail are the times of a binding, processor the time that both replicas took for one,
	// with the events of its pod.
	median, tail, processor samples.Set
	// rates are the pods that a scheduler binds in a second. server and replicas are the time of the
	// API server and of both replicas for one of them, connections the new ones to the replicas.
	rates, server, replicas, connections samples.Set
	// limited are the pods that a scheduler with the default limits of its requests binds in a second.
	limited samples.Set
}

// BenchmarkArbiter takes ROUNDS (5) samples of each side.
func BenchmarkArbiter(b *testing.B) {
	binaries, err := apiserver.FindBinaries(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	server := apiserver.StartFor(b, binaries, webhooks.Flags()...)
	plane := controlplane.On(b, server)
	names := controlplane.Numbered("node", nodes)
	plane.Nodes(b.Context(), b, group, names...)
	w := webhooks.Install(b, server)
	w.Trust(b)
	replicas := []*webhooks.Replica{w.Start(b), w.Start(b)}
	leader := w.Leader(b)
	without, with := &side{name: "without", namespace: metav1.NamespaceSystem}, &side{name: "with", namespace: "bench"}
	plane.Namespace(b.Context(), b, with.namespace)
	x := &bench{plane, names, replicas}
	for b.Loop() {
		for round := range samples.Rounds(b, 5) {
			for _, s := range samples.Turn([]*side{without, with}, round) {
				x.bindings(b, s)
				x.rate(b, s)
				limited, _ := x.schedule(b, s, few, defaults)
				s.limited = append(s.limited, limited)
			}
		}
	}
	for _, s := range []*side{without, with} {
		b.Logf("%s: binding %.2f ms, p99 %.2f ms, %.0f µs of the replicas; %.0f pods/s, %.0f µs of the API server, "+
			"%.0f µs of the replicas, %.2f connections for each; with the default limits %.1f pods/s", s.name, s.median, s.tail, s.processor,
			s.rates, s.server, s.replicas, s.connections, s.limited)
		s.median.ReportMedian(b, s.name, "ms")
		s.tail.ReportMedian(b, s.name+"-p99", "ms")
		s.rates.ReportMedian(b, s.name, "pods/s")
	}
	// Without a decision, a binding passes.
	admitted := leader.Metric(b, `pmk_sched_arbiter_decisions_total{result="admitted"}`)
	bound := float64((2*pods + few) * len(with.rates))
	if admitted < bound/2 {
		b.Errorf("the arbiter admitted %.0f of %.0f bindings", admitted, bound)
	}
	b.ReportMetric(bound-admitted, "undecided")
	for _, r := range replicas {
		b.Logf("%s:\n%s", r.Name, r.Decisions(b))
	}
	more := with.tail.Median() - without.tail.Median()
	b.ReportMetric(more, "p99-more-ms")
	samples.Claim("docs/two-schedulers.md", "The arbiter adds less than 3 ms to the 99th percentile of a binding").
		AtMost(b, "milliseconds more", more, 3)
	b.ReportMetric(with.processor.Median(), "replicas-µs/binding")
	b.ReportMetric(with.rates.Median()/without.rates.Median(), "pods/s-of-without")
	limited := with.limited.Median() / without.limited.Median()
	b.ReportMetric(limited, "limited-pods/s-of-without")
	samples.Claim("docs/two-schedulers.md", "at least 0.9 of the pods at the default limits").
		AtLeast(b, "part of the pods a second", limited, 0.9)
	with.connections.ReportMedian(b, "connections", "per-pod")
	for _, s := range []*side{without, with} {
		s.server.ReportMedian(b, s.name+"-server", "µs/pod")
		s.replicas.ReportMedian(b, s.name+"-replicas", "µs/pod")
	}
	for _, r := range replicas {
		role := "follower"
		if r == leader {
			role = "leader"
		}
		b.ReportMetric(run.MemoryOf(b, r.PID(), "VmHWM"), role+"-MiB")
	}
}

type bench struct {
	*controlplane.Plane
	nodes    []string
	replicas []*webhooks.Replica
}

// processor returns the processor's time that the replicas have taken.
func (x *bench) processor(b *testing.B) (sum time.Duration) {
	for _, r := range x.replicas {
		sum += run.CPUOf(b, r.PID())
	}
	return sum
}

// create creates pending pods.
func (x *bench) create(ctx context.Context, b *testing.B, namespace, scheduler string, pods int) []*corev1.Pod {
	var all []*corev1.Pod
	for _, name := range controlplane.Numbered("pod", pods) {
		all = append(all, controlplane.Pod(scheduler, group, name))
	}
	x.Create(ctx, b, namespace, all...)
	return all
}

// bindings binds pods by a few clients, and notes the median and the 99th percentile of a binding's
// time.
func (x *bench) bindings(b *testing.B, s *side) {
	all := x.create(b.Context(), b, s.namespace, "nobody", pods)
	defer controlplane.DeletePods(b.Context(), b, x.Kube, s.namespace)
	took, used := make([]float64, len(all)), x.processor(b)
	var of errgroup.Group
	for client := range clients {
		of.Go(func() error {
			for i := client; i < len(all); i += clients {
				began := time.Now()
				err := x.Kube.CoreV1().Pods(s.namespace).Bind(b.Context(), &corev1.Binding{
					ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: all[i].Name},
					Target:     corev1.ObjectReference{Kind: "Node", Name: x.nodes[i%len(x.nodes)]}}, metav1.CreateOptions{})
				if err != nil {
					return err
				}
				took[i] = time.Since(began).Seconds() * 1000
			}
			return nil
		})
	}
	if err := of.Wait(); err != nil {
		b.Fatal(err)
	}
	slices.Sort(took)
	s.median, s.tail = append(s.median, took[len(took)/2]), append(s.tail, took[len(took)*99/100])
	s.processor = append(s.processor, float64((x.processor(b)-used).Microseconds())/float64(len(all)))
}

// rate notes the pods that a scheduler binds in a second as fast as it can, and what that takes.
func (x *bench) rate(b *testing.B, s *side) {
	rate, used := x.schedule(b, s, pods, "")
	s.rates = append(s.rates, rate)
	s.server = append(s.server, float64(used.server.Microseconds())/pods)
	s.replicas = append(s.replicas, float64(used.replicas.Microseconds())/pods)
	s.connections = append(s.connections, used.connections/pods)
}

// use is the processor's time that the API server and the replicas have taken, and the number of
// connections that were opened to the replicas.
type use struct {
	server, replicas time.Duration
	connections      float64
}

func (x *bench) use(b *testing.B) use { return use{x.server(b), x.processor(b), x.connections(b)} }

// schedule returns how many pods a scheduler binds in a second, and what that takes. API servers
// know its user as the default scheduler: for it they handle a limited number of requests at the
// same time.
func (x *bench) schedule(b *testing.B, s *side, pods int, limits string) (rate float64, used use) {
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Minute)
	defer cancel()
	x.create(ctx, b, s.namespace, "bench", pods)
	defer controlplane.DeletePods(b.Context(), b, x.Kube, s.namespace)
	events := controlplane.WatchBound(ctx, b, x.Kube, s.namespace)
	scheduler := controlplane.Scheduler{Name: "bench", User: "system:kube-scheduler"}
	if limits != "" {
		scheduler.Source = []byte("apiVersion: " + x.api(b) + "\nkind: KubeSchedulerConfiguration\n" + limits)
	}
	process := x.NewScheduler(b, scheduler)
	before := x.use(b)
	process.Start()
	defer process.Kill()
	rate, bound := controlplane.BindingRate(events, pods)
	if bound < pods {
		b.Fatalf("bound only %d of %d pods in %s", bound, pods, s.namespace)
	}
	after := x.use(b)
	return rate, use{after.server - before.server, after.replicas - before.replicas,
		after.connections - before.connections}
}

// api returns the API version of the configuration of schedulers.
func (x *bench) api(b *testing.B) string {
	rules, err := versions.Select(x.Release)
	if err != nil {
		b.Fatal(err)
	}
	return rules.Render
}

// server returns the processor's time that the API server has taken.
func (x *bench) server(b *testing.B) time.Duration {
	text, err := x.Kube.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\nprocess_cpu_seconds_total ")
	var seconds float64
	if _, err := fmt.Sscan(rest, &seconds); err != nil {
		b.Fatal(err)
	}
	return time.Duration(seconds * float64(time.Second))
}

// connections returns how many connections to the replicas were opened.
func (x *bench) connections(b *testing.B) (sum float64) {
	for _, r := range x.replicas {
		sum += r.Metric(b, "pmk_sched_admission_connections_total")
	}
	return sum
}
