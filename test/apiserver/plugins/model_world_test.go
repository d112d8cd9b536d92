//go:build linux

package plugins

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/coscheduling"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/elasticquota"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/gpupacking"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/numaaware"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

const (
	// important is the priority class of some pods of teams.
	important = "model-important"
	// quotaName is the name of the ElasticQuota of each team.
	quotaName = "quota"
)

// world is a cluster with a scheduler that has the plugins, and the model of it.
type world struct {
	*cluster
	*model
	quotas, podGroups, topologies dynamic.NamespaceableResourceInterface

	background sync.WaitGroup // kubelets and agents
	// unfinished is the number of reports that the kubelets have not made yet.
	unfinished int
	names      int // of objects so far
	down       int // operations until the scheduler is started again, 0 if it runs
}

// newSeed returns a seed by chance, or SEED, and logs it. The same seed makes the same choices; the
// state of the cluster that they meet depends on the scheduler, too.
func newSeed(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("SEED: %v", err)
		}
	}
	t.Logf("seed %d", seed)
	return seed
}

// startWorld starts a scheduler on nodes and teams. Everything ends with the test.
func startWorld(ctx context.Context, t *testing.T, s subject) *world {
	t.Helper()
	const name = "model"
	w := &world{model: newModel(newSeed(t))}
	// Pods are retried soon, so that the model need not wait, and the clients of the scheduler are not
	// slower than this test.
	source := []byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n" +
		"podMaxBackoffSeconds: 2\nclientConnection: {qps: 1000, burst: 2000}\n")
	w.cluster = s.prepareAll(t, name, source,
		enabled{profiles.Plugin{Name: elasticquota.Name}, elasticquota.Rules},
		enabled{profiles.Plugin{Name: coscheduling.Name, Args: []byte(
			"{timeout: 5s, backoff: {initial: 1s, max: 2s}}")}, coscheduling.Rules},
		enabled{profiles.Plugin{Name: gpupacking.Name, Weight: 10, Args: []byte(
			"{resource: example.com/gpu-milli, devices: {units: 1000}, annotations: {index: example.com/gpu-index}}")},
			gpupacking.Rules},
		enabled{profiles.Plugin{Name: numaaware.Name, Weight: 5, Args: []byte(
			"{unaligned: Reject, settle: 10s}")}, numaaware.Rules})
	resource := func(plugin, group, version, plural string) dynamic.NamespaceableResourceInterface {
		client := w.define(t, plugin, schema.GroupVersionResource{Group: group, Version: version, Resource: plural})
		run.Eventually(t, plural+" can be created", func(ctx context.Context) (bool, string) {
			_, err := client.List(ctx, metav1.ListOptions{})
			return err == nil, fmt.Sprint(err)
		})
		return client
	}
	w.quotas = resource("elasticquota", "scheduling.x-k8s.io", "v1alpha1", "elasticquotas")
	w.podGroups = resource("coscheduling", "scheduling.x-k8s.io", "v1alpha1", "podgroups")
	w.topologies = resource("numaaware", "topology.node.k8s.io", "v1alpha2", "noderesourcetopologies")
	w.PriorityClass(ctx, t, important, 10)
	for _, letter := range []string{"a", "b", "c", "d"} {
		w.addTeam(ctx, t, name+"-"+letter)
	}
	w.follow(ctx, t)
	for range fewestNodes + 3 {
		w.addNode(ctx)
	}
	w.check(t)
	w.scheduler.Start()
	return w
}

// addTeam adds a namespace with an ElasticQuota.
func (w *world) addTeam(ctx context.Context, t *testing.T, namespace string) {
	t.Helper()
	w.Namespace(ctx, t, namespace)
	t.Cleanup(func() { w.Clear(t, namespace) })
	least, most := w.newLimits()
	create(ctx, t, w.quotas.Namespace(namespace), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "ElasticQuota",
		"metadata": map[string]any{"name": quotaName, "namespace": namespace},
		"spec":     map[string]any{"min": quantities(least), "max": quantities(most)},
	}})
	w.teams[namespace] = &team{namespace: namespace, limits: []limit{{max: most}}}
}

// quantities returns amounts as an object has them.
func quantities(all sums) map[string]any {
	list := map[string]any{}
	for name, amount := range all {
		if list[string(name)] = amount; name == corev1.ResourceCPU {
			list[string(name)] = fmt.Sprintf("%dm", amount)
		}
	}
	return list
}

// follow reads the events of all pods until ctx ends, in their order.
func (w *world) follow(ctx context.Context, t *testing.T) {
	t.Helper()
	list, err := w.Kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	w.background.Add(1)
	go func() {
		defer w.background.Done()
		for version := list.ResourceVersion; ctx.Err() == nil; {
			events, err := w.Kube.CoreV1().Pods("").Watch(ctx, metav1.ListOptions{ResourceVersion: version})
			if err != nil {
				w.tolerate(ctx, err, "watch pods")
				return
			}
			for event := range events.ResultChan() {
				pod, ok := event.Object.(*corev1.Pod)
				if !ok {
					w.tolerate(ctx, fmt.Errorf("event %v", event), "watch pods")
					return
				}
				version = pod.ResourceVersion
				if pod.Spec.SchedulerName == w.name {
					w.event(ctx, pod, event.Type == watch.Deleted)
				}
			}
		}
	}()
}

// event handles an event of a pod: it checks the limits and does the work of the kubelet and of the
// collector of pods on nodes that are gone.
func (w *world) event(ctx context.Context, pod *corev1.Pod, gone bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r, bound, ended := w.observe(pod, gone)
	on := w.machines[pod.Spec.NodeName]
	switch {
	case ended:
		w.note(fmt.Sprintf("%s ended (%s, deleted: %t)", r.key(), pod.Status.Phase, gone), r.key(), pod.Spec.NodeName,
			pod.Namespace, r.gang())
		w.release(r)
	case bound:
		w.checkBound(r)
		if on != nil && !on.gone {
			w.admit(r, on)
		}
	}
	switch {
	case !r.takes():
	case on == nil || on.gone:
		if bound {
			w.async(func() { w.remove(ctx, pod) })
		}
	case bound, isResized(pod):
		w.async(func() { w.start(ctx, r, on) })
	}
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// async does the work of a kubelet. The caller holds w.mu.
func (w *world) async(do func()) {
	w.unfinished++
	w.background.Add(1)
	go func() {
		defer w.background.Done()
		do()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.unfinished--
	}()
}

// remove deletes a pod.
func (w *world) remove(ctx context.Context, pod *corev1.Pod) {
	w.mu.Lock()
	w.removed[pod.UID] = true
	w.mu.Unlock()
	err := w.Kube.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name,
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}})
	w.tolerate(ctx, err, "delete pod "+keyOf(pod))
}
