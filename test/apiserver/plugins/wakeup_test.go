//go:build linux && releases

package plugins

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/coscheduling"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/elasticquota"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/gpupacking"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/numaaware"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// A pod that a plugin rejected is bound soon after the event that makes room, in a cluster where nothing else happens: without the event
// it would wait for five minutes. The tests do not run in parallel with others, whose events would wake the pods.

func TestGPUsThatComeFreeWakePods(t *testing.T) {
	const args = `{resource: example.com/gpu-milli, devices: {units: 1000}, annotations: {index: example.com/gpu-index}}`
	rules, err := gpupacking.Rules(scheduler.NewArguments([]byte(args)))
	if err != nil {
		t.Fatal(err)
	}
	x := startSleepers(t, "wake-gpus", profiles.Plugin{Name: "GPUPacking", Args: []byte(args)}, rules)
	x.addNode(t, "wake-gpus-a", amounts{gpuMilli: "2000"})
	x.untaint(t, "wake-gpus-a")
	for _, name := range []string{"one", "two"} { // on a device each
		x.create(t, name, nil, amounts{gpuMilli: "600"})
		x.awaitBound(t, name)
	}

	// In total enough is free for each of the pods, so that no other plugin rejects it and wakes it.
	const reason = "no GPU has enough free"
	x.reject(t, "second", nil, amounts{gpuMilli: "500"}, reason)
	x.wakes(t, "another pod is deleted", func() { x.remove(t, "one") }, "second")

	x.reject(t, "third", nil, amounts{gpuMilli: "600"}, reason)
	x.wakes(t, "a node has more GPUs", func() { x.allocate(t, "wake-gpus-a", amounts{gpuMilli: "3000"}) }, "third")

	x.reject(t, "fourth", nil, amounts{gpuMilli: "600"}, reason)
	// As every new node it has a taint, and its device plugin reports the GPUs before the taint is gone.
	x.addNode(t, "wake-gpus-b", amounts{gpuMilli: "1000"})
	x.wakes(t, "a new node loses its taint", func() { x.untaint(t, "wake-gpus-b") }, "fourth")
}

func TestQuotaThatComesFreeWakesPods(t *testing.T) {
	const args = `{quotas: [{name: w, namespaces: [wake-quota], max: {example.com/wake-seats: 1}}]}`
	rules, err := elasticquota.Rules(scheduler.NewArguments([]byte(args)))
	if err != nil {
		t.Fatal(err)
	}
	const seat corev1.ResourceName = "example.com/wake-seats"
	x := startSleepers(t, "wake-quota", profiles.Plugin{Name: "ElasticQuota", Args: []byte(args)}, rules)
	x.addNode(t, "wake-quota-a", amounts{seat: "4"})
	x.untaint(t, "wake-quota-a")
	x.create(t, "pod-0", nil, amounts{seat: "1"})
	x.awaitBound(t, "pod-0")
	for i := range 3 {
		next := fmt.Sprintf("pod-%d", i+1)
		x.reject(t, next, nil, amounts{seat: "1"}, "no more than 1 of example.com/wake-seats")
		x.wakes(t, "another pod of the quota is deleted", func() { x.remove(t, fmt.Sprintf("pod-%d", i)) }, next)
	}
}

func TestRoomForAGroupWakesItsPods(t *testing.T) {
	rules, err := coscheduling.Rules(scheduler.Arguments{})
	if err != nil {
		t.Fatal(err)
	}
	const slot corev1.ResourceName = "example.com/wake-slots"
	one := amounts{slot: "1"}
	x := startSleepers(t, "wake-gangs", profiles.Plugin{Name: "Coscheduling"}, rules)
	x.addNode(t, "wake-gangs-a", amounts{slot: "2"})
	x.untaint(t, "wake-gangs-a")
	x.create(t, "alone", nil, one)
	x.awaitBound(t, "alone")

	group := map[string]string{groupLabel: "a", memberLabel: "2"}
	x.create(t, "a-0", group, one)
	x.reject(t, "a-1", group, one, "more than is free")
	x.wakes(t, "another pod is deleted", func() { x.remove(t, "alone") }, "a-0", "a-1")

	group = map[string]string{groupLabel: "b", memberLabel: "2"}
	x.create(t, "b-0", group, one)
	x.reject(t, "b-1", group, one, "more than is free")
	x.wakes(t, "a node has more room", func() { x.allocate(t, "wake-gangs-a", amounts{slot: "4"}) }, "b-0", "b-1")
}

func TestRoomInANUMANodeWakesPods(t *testing.T) {
	rules, err := numaaware.Rules(scheduler.Arguments{})
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	ctx := testContext(t)
	create(ctx, t, client, definitions, read(t, "numaaware", "crd.yaml"))
	topologies := client.Resource(schema.GroupVersionResource{Group: "topology.node.k8s.io", Version: "v1alpha2", Resource: "noderesourcetopologies"})
	zones := func(available int64) []any {
		cpus := map[string]any{"name": "cpu", "capacity": int64(8), "allocatable": int64(8), "available": available}
		return []any{map[string]any{"name": "node-0", "type": "Node", "resources": []any{cpus}}}
	}
	run.Eventually(t, "create the topology", func(ctx context.Context) (bool, string) {
		_, err := topologies.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "topology.node.k8s.io/v1alpha2", "kind": "NodeResourceTopology", "metadata": map[string]any{"name": "wake-zones-a"},
			"attributes": []any{map[string]any{"name": "topologyManagerPolicy", "value": "single-numa-node"}}, "zones": zones(8),
		}}, metav1.CreateOptions{})
		return err == nil, fmt.Sprint(err)
	})

	six := amounts{corev1.ResourceCPU: "6", corev1.ResourceMemory: "1Gi"} // of the class Guaranteed
	x := startSleepers(t, "wake-zones", profiles.Plugin{Name: "NUMAAware"}, rules)
	x.addNode(t, "wake-zones-a", amounts{corev1.ResourceCPU: "32"})
	x.untaint(t, "wake-zones-a")
	x.create(t, "first", nil, six)
	x.awaitBound(t, "first")
	x.reject(t, "second", nil, six, "no NUMA node has room for the pod")
	x.wakes(t, "another pod is deleted", func() { x.remove(t, "first") }, "second")

	x.reject(t, "third", nil, six, "no NUMA node has room for the pod")
	x.wakes(t, "the topology shows more room", func() {
		patch, err := json.Marshal(map[string]any{"zones": zones(16)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := topologies.Patch(ctx, "wake-zones-a", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}, "third")
}

// amounts are quantities by resource.
type amounts map[corev1.ResourceName]string

func (a amounts) list() corev1.ResourceList {
	all := corev1.ResourceList{}
	for name, amount := range a {
		all[name] = resource.MustParse(amount)
	}
	return all
}

// sleepers is a scheduler with a plugin, named as its namespace.
type sleepers struct {
	*schedulerProcess
	ctx       context.Context
	kube      kubernetes.Interface
	namespace string
}

func startSleepers(t *testing.T, namespace string, plugin profiles.Plugin, rules []rbacv1.PolicyRule) *sleepers {
	t.Helper()
	built := buildScheduler(t.Context(), t) // for the first time that takes minutes
	x := &sleepers{ctx: testContext(t), kube: server.Client(t), namespace: namespace}
	createNamespace(x.ctx, t, x.kube, namespace)
	x.schedulerProcess = startPlugin(x.ctx, t, x.kube, built, namespace, plugin, rules)
	return x
}

// addNode adds a node with a taint, which the API server sets.
func (x *sleepers) addNode(t *testing.T, name string, room amounts) {
	t.Helper()
	createReadyNode(x.ctx, t, x.kube, name)
	t.Cleanup(func() {
		if err := x.kube.CoreV1().Nodes().Delete(context.WithoutCancel(x.ctx), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	x.allocate(t, name, room)
}

func (x *sleepers) allocate(t *testing.T, node string, room amounts) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"allocatable": room.list(), "capacity": room.list()}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.kube.CoreV1().Nodes().Patch(x.ctx, node, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
}

// untaint does what the controller for the life cycle of nodes does when the kubelet is ready.
func (x *sleepers) untaint(t *testing.T, node string) {
	t.Helper()
	if _, err := x.kube.CoreV1().Nodes().Patch(x.ctx, node, types.MergePatchType, []byte(`{"spec": {"taints": null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (x *sleepers) create(t *testing.T, name string, labels map[string]string, need amounts) {
	t.Helper()
	pod := newPod(x.namespace, 0)
	pod.Name, pod.Labels, pod.Spec.SchedulerName = name, labels, x.namespace
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: need.list(), Limits: need.list()}
	if _, err := x.kube.CoreV1().Pods(x.namespace).Create(x.ctx, pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (x *sleepers) awaitBound(t *testing.T, name string) {
	t.Helper()
	awaitBound(x.ctx, t, x.kube, x.namespace, name)
}

// reject creates a pod and waits until the scheduler has rejected it with a reason.
func (x *sleepers) reject(t *testing.T, name string, labels map[string]string, need amounts, reason string) {
	t.Helper()
	x.create(t, name, labels, need)
	run.Eventually(t, "pod "+name+" is rejected", func(ctx context.Context) (bool, string) {
		pod, err := x.kube.CoreV1().Pods(x.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return strings.Contains(fmt.Sprint(pod.Status.Conditions), reason), fmt.Sprint(pod.Status.Conditions)
	})
}

func (x *sleepers) remove(t *testing.T, name string) {
	t.Helper()
	now := int64(0)
	if err := x.kube.CoreV1().Pods(x.namespace).Delete(x.ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
}

// backOff is that of a pod after its third attempt: the pods are not in their back-off when the event occurs.
const backOff = 4 * time.Second

// wakes checks that pods are bound within freedTime of an event.
func (x *sleepers) wakes(t *testing.T, what string, event func(), pods ...string) {
	t.Helper()
	time.Sleep(backOff)
	began := time.Now()
	event()
	for _, name := range pods {
		x.awaitBound(t, name)
	}
	took := time.Since(began)
	if took > freedTime {
		t.Errorf("%s: bound after %s", what, took)
	}
	t.Logf("%s: bound after %s", what, took)
}
