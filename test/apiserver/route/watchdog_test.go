//go:build linux

package route

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap/zaptest"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/admission/watchdog"
	"github.com/pmk-sched/pmk-sched/internal/deploy/route"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/routes"
)

// renewing renews the lease of a scheduler every half second while it is on.
func renewing(t *testing.T, kube kubernetes.Interface, namespace string) *atomic.Bool {
	t.Helper()
	holder, now := "replica", metav1.NowMicro()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: scheduler, Namespace: namespace},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &now}}
	lease, err := kube.CoordinationV1().Leases(namespace).Create(t.Context(), lease, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	on := &atomic.Bool{}
	on.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ; ctx.Err() == nil; time.Sleep(500 * time.Millisecond) {
			if !on.Load() {
				continue
			}
			now := metav1.NowMicro()
			lease.Spec.RenewTime = &now
			renewed, err := kube.CoordinationV1().Leases(namespace).Update(ctx, lease, metav1.UpdateOptions{})
			if err == nil {
				lease = renewed
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return on
}

func await(t *testing.T, what string, met func() bool) {
	t.Helper()
	for until := time.Now().Add(time.Minute); !met(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("does not happen: " + what)
		}
	}
}

func TestRouteToALostSchedulerEndsUntilItLeadsAgain(t *testing.T) {
	for _, release := range releases() {
		t.Run(release, func(t *testing.T) {
			p := controlplane.StartAPIServer(t, release, routes.Flags(release)...)
			for _, api := range mechanisms(p) {
				t.Run("policy "+api, func(t *testing.T) { checkWatchdog(t, p, api) })
			}
			if all := mechanisms(p); len(all) > 1 { // as while a policy takes the place of a webhook
				t.Run("all", func(t *testing.T) { checkWatchdog(t, p, all...) })
			}
		})
	}
}

// checkWatchdog checks a route that is registered in each of the given APIs; "" is the webhook.
func checkWatchdog(t *testing.T, p *controlplane.Plane, apis ...string) {
	ns := controlplaneNamespace(t, p)
	on := renewing(t, p.Kube, ns)
	for _, api := range apis {
		routes.Register(t, p.Config(), route.Registration{Release: p.Release, PolicyAPI: api, Rule: route.Rule{
			Scheduler: scheduler, Namespace: "schedulers", Lease: ns + "/" + scheduler,
			Route: v1alpha1.Route{Namespaces: []string{ns}, OnFailure: v1alpha1.OnFailureRelease,
				FailureAfter: v1alpha1.Duration(3 * time.Second)},
		}})
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- watchdog.Run(ctx, watchdog.Options{Config: p.Config(), Component: "pmk-sched-controller",
			Recovery: 3 * time.Second, Log: zaptest.NewLogger(t)})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	routed := func() bool {
		return create(t, p, pod(func(p *corev1.Pod) { p.Namespace = ns })).Spec.SchedulerName == scheduler
	}
	await(t, "the route acts", routed)
	before := waiting(t, p.Kube, ns)
	on.Store(false)
	await(t, "the route ends", func() bool { return !routed() })
	want := []string{"bare", "foreign", "job-last"}
	await(t, "pods of controllers are released", func() bool { return len(names(t, p.Kube, ns)) <= len(want) })
	if diff := cmp.Diff(want, names(t, p.Kube, ns)); diff != "" {
		t.Errorf("pods that are left of %q (-want +got):\n%s", before, diff)
	}
	checkEvents(t, p.Kube, ns)
	on.Store(true)
	await(t, "the route acts again", routed)
}

func controlplaneNamespace(t *testing.T, p *controlplane.Plane) string {
	t.Helper()
	made, err := p.Kube.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "watched-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made.Name
}

// waiting creates pods that are routed and wait, of each kind of owner, and returns their names.
func waiting(t *testing.T, kube kubernetes.Interface, ns string) []string {
	t.Helper()
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}},
		Spec: corev1.PodSpec{Containers: containers(gpu)}}
	selector := &metav1.LabelSelector{MatchLabels: template.Labels}
	rs, err := kube.AppsV1().ReplicaSets(ns).Create(t.Context(), &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "set"}, Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: template},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	jobs := map[string]*batchv1.Job{}
	for name, limit := range map[string]int32{"job": 2, "job-last": 0} {
		pods := *template.DeepCopy()
		pods.Spec.RestartPolicy = corev1.RestartPolicyNever
		if jobs[name], err = kube.BatchV1().Jobs(ns).Create(t.Context(), &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.JobSpec{BackoffLimit: &limit, Template: pods},
		}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	owned := map[string]*metav1.OwnerReference{"bare": nil,
		"foreign": {APIVersion: "example.com/v1", Kind: "Task", Name: "t", UID: "t"}}
	for i := range 30 {
		owned[fmt.Sprintf("set-%02d", i)] = &metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: rs.Name,
			UID: rs.UID}
	}
	for name, job := range jobs {
		owned[name] = &metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: name, UID: job.UID}
	}
	for name, owner := range owned {
		made := pod(func(p *corev1.Pod) { p.GenerateName, p.Name, p.Namespace = "", name, ns })
		if owner != nil {
			owner.Controller = new(true)
			made.OwnerReferences = []metav1.OwnerReference{*owner}
		}
		made, err := kube.CoreV1().Pods(ns).Create(t.Context(), made, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if made.Spec.SchedulerName != scheduler {
			t.Fatalf("pod %s is not routed", name)
		}
	}
	return slices.Sorted(maps.Keys(owned))
}

func names(t *testing.T, kube kubernetes.Interface, ns string) (all []string) {
	t.Helper()
	pods, err := kube.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		all = append(all, pods.Items[i].Name)
	}
	slices.Sort(all)
	return all
}

// checkEvents checks that each owner, and each pod that is left, has an event.
func checkEvents(t *testing.T, kube kubernetes.Interface, ns string) {
	t.Helper()
	want := []string{"Job/job PodReleased", "Pod/bare PodNotReleased", "Pod/foreign PodNotReleased",
		"Pod/job-last PodNotReleased", "ReplicaSet/set PodReleased"}
	var got []string
	await(t, "events are written", func() bool {
		events, err := kube.CoreV1().Events(ns).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got = nil
		for i := range events.Items {
			e := &events.Items[i]
			if strings.Contains(e.Message, scheduler) {
				got = append(got, e.InvolvedObject.Kind+"/"+e.InvolvedObject.Name+" "+e.Reason)
			}
		}
		slices.Sort(got)
		got = slices.Compact(got)
		return len(got) >= len(want)
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
