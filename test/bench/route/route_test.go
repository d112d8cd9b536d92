//go:build linux

// Package route measures what a route costs: the time in which an API server creates a pod. The
// sides differ in the namespace of the pods only, which the route selects or not. Two sides are
// not selected: their difference is what the machine alone makes.
package route

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/deploy/route"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/routes"
	"github.com/pmk-sched/pmk-sched/test/internal/samples"
)

const (
	pods      = 1000
	workloads = 20
	scheduler = "bench"
)

// side is a namespace, the times of all creations in it in milliseconds, and their median and 99th
// percentile in each round.
type side struct {
	name, namespace, scheduler string
	all, median, tail          samples.Set
}

// percentile returns the time that a part of the creations of all rounds did not take.
func (s *side) percentile(part int) float64 {
	slices.Sort(s.all)
	return s.all[len(s.all)*part/100]
}

// BenchmarkRoute creates the pods of 20 workloads on each side in ROUNDS (5) at each RELEASE: by a
// policy, or by the webhook where the release has no policies.
func BenchmarkRoute(b *testing.B) {
	for _, release := range strings.Fields(cmp.Or(os.Getenv("RELEASE"), "v1.24.3 v1.37.1")) {
		b.Run(release, func(b *testing.B) {
			p := controlplane.StartAPIServer(b, release, routes.Flags(release)...)
			without := &side{name: "without", namespace: "plain", scheduler: corev1.DefaultSchedulerName}
			again := &side{name: "again", namespace: "other", scheduler: corev1.DefaultSchedulerName}
			with := &side{name: "with", namespace: "routed", scheduler: scheduler}
			for _, s := range []*side{without, again, with} {
				p.Namespace(b.Context(), b, s.namespace)
			}
			api := p.Release.Rules().MutatingPolicyAPI
			routes.Register(b, p.Config(), route.Registration{Release: p.Release, PolicyAPI: api, Rule: route.Rule{
				Scheduler: scheduler, Namespace: "kube-system", Route: v1alpha1.Route{Namespaces: []string{with.namespace}}}})
			awaitRoute(b, p, with.namespace)
			for b.Loop() {
				for range samples.Rounds(b, 5) {
					create(b, p, without, again, with)
				}
			}
			for _, s := range []*side{without, again, with} {
				b.Logf("%s: median %.2f ms (rounds %.2f), p99 %.1f ms (rounds %.1f)", s.name, s.percentile(50), s.median,
					s.percentile(99), s.tail)
				s.median.ReportMedian(b, s.name, "ms")
				s.tail.ReportMedian(b, s.name+"-p99", "ms")
			}
			more := with.percentile(50) - without.percentile(50)
			b.ReportMetric(more, "median-more-ms")
			b.ReportMetric(with.percentile(99)-without.percentile(99), "p99-more-ms")
			b.ReportMetric(again.percentile(99)-without.percentile(99), "p99-machine-ms")
			samples.Claim("docs/two-schedulers.md", "A route adds less than 3 ms to the median creation").
				AtMost(b, "milliseconds more", more, 3)
		})
	}
}

func pod(namespace string, i int) *corev1.Pod {
	made := controlplane.Pod("", namespace, fmt.Sprintf("pod-%04d", i))
	made.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", UID: "u",
		Name: fmt.Sprintf("set-%02d", i%workloads), Controller: new(true)}}
	return made
}

// awaitRoute waits until the API server knows the route.
func awaitRoute(b *testing.B, p *controlplane.Plane, namespace string) {
	b.Helper()
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		made, err := p.Kube.CoreV1().Pods(namespace).Create(b.Context(), pod(namespace, 0),
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			b.Fatal(err)
		}
		if made.Spec.SchedulerName == scheduler {
			return
		}
		if time.Now().After(until) {
			b.Fatal("the route does not act")
		}
	}
}

// create creates the pods of all sides one after the other, those of the sides in turn, so that a
// pause of the machine meets them all. It checks that all pods of a side are routed or none.
func create(b *testing.B, p *controlplane.Plane, sides ...*side) {
	b.Helper()
	took := map[*side][]float64{}
	for i := range pods {
		for _, s := range samples.Turn(sides, i) {
			began := time.Now()
			made, err := p.Kube.CoreV1().Pods(s.namespace).Create(b.Context(), pod(s.namespace, i), metav1.CreateOptions{})
			if err != nil {
				b.Fatal(err)
			}
			took[s] = append(took[s], time.Since(began).Seconds()*1000)
			if made.Spec.SchedulerName != s.scheduler {
				b.Fatalf("%s %s has scheduler %s, want %s", s.name, made.Name, made.Spec.SchedulerName, s.scheduler)
			}
		}
	}
	for _, s := range sides {
		s.all = append(s.all, took[s]...)
		slices.Sort(took[s])
		s.median, s.tail = append(s.median, took[s][pods/2]), append(s.tail, took[s][pods*99/100])
		controlplane.DeletePods(b.Context(), b, p.Kube, s.namespace)
	}
}
